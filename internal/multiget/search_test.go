package multiget

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// An entry of a table. Its value is its sequence number in text, with padding.
type entry struct {
	key  string
	seq  base.SeqNum
	kind base.Kind
}

func (e entry) value() []byte { return fmt.Appendf(nil, "%d%s", e.seq, bytes.Repeat([]byte("-"), 70)) }

// files are the files of a store. A read of one takes delay.
type files struct {
	data   map[string][]byte
	delay  time.Duration
	reads  atomic.Int64
	broken string // cannot be opened
}

func (f *files) open(name string) (vfs.ReadFile, error) {
	if name == f.broken {
		return nil, errBroken
	}
	return file{bytes.NewReader(f.data[name]), f}, nil
}

var errBroken = errors.New("broken")

type file struct {
	*bytes.Reader
	of *files
}

func (f file) ReadAt(p []byte, off int64) (int, error) {
	f.of.reads.Add(1)
	time.Sleep(f.of.delay)
	return f.Reader.ReadAt(p, off)
}
func (f file) Size() (int64, error) { return f.Reader.Size(), nil }
func (file) Close() error           { return nil }

func fileOf(num uint64) string { return manifest.FileName(manifest.FileTable, num) }

// A store is a version, its files, and what opens them.
type store struct {
	*files
	version *version.Version
	tables  tablecache.Cache
	levels  [manifest.NumLevels]counters.Level
}

// newStore writes the tables of sorted runs, the newest first: one run of each table except those of the last level.
func newStore(t require.TestingT, o sstable.WriterOptions, level0 [][]entry, last ...[]entry) *store {
	s := &store{files: &files{data: map[string][]byte{}}}
	s.tables.Path, s.tables.OpenFile, s.tables.Log = fileOf, s.open, slog.Default()
	s.tables.Options.CacheSize = -1
	e := &manifest.Edit{}
	add := func(level int, entries []entry) {
		var b bytes.Buffer
		w := sstable.NewWriter(&b, &o)
		table := manifest.Table{Num: uint64(100 - len(e.Added)), SmallestSeq: base.MaxSeqNum}
		for _, e := range entries {
			require.NoError(t, w.Add(base.MakeKey([]byte(e.key), e.seq, e.kind), e.value()))
			table.SmallestSeq, table.LargestSeq = min(table.SmallestSeq, e.seq), max(table.LargestSeq, e.seq)
		}
		info, err := w.Finish()
		require.NoError(t, err)
		table.ID, table.Size, table.TailSize = info.ID, info.Size, info.TailSize
		table.Smallest, table.Largest = []byte(entries[0].key), []byte(entries[len(entries)-1].key)
		table.Entries = uint64(len(entries))
		s.data[fileOf(table.Num)] = b.Bytes()
		e.Added = append(e.Added, manifest.AddedTable{Level: level, Table: table})
	}
	for _, entries := range level0 {
		add(0, entries)
	}
	for _, entries := range last {
		add(manifest.NumLevels-1, entries)
	}
	var err error
	s.version, err = (&version.Version{}).Apply(e)
	require.NoError(t, err)
	return s
}

// search returns a Search in the store, and what it has got for each key.
func (s *store) search(at base.SeqNum) (search *Search, got map[int32][]string) {
	var mutex sync.Mutex
	got = map[int32][]string{}
	search = &Search{Version: s.version, Tables: &s.tables, At: at, Levels: &s.levels}
	search.Answer = func(k *Key, _ *sstable.Reader, found *sstable.Lookup) (bool, error) {
		mutex.Lock()
		defer mutex.Unlock()
		got[k.Owner] = append(got[k.Owner], string(found.Value))
		return found.Trailer.Kind() != base.KindMerge, nil
	}
	return search, got
}

func keysOf(keys ...string) (all []*Key) {
	for i, key := range keys {
		all = append(all, &Key{Key: []byte(key), Hash: filterpolicy.Hash([]byte(key)), Owner: int32(i)})
	}
	return all
}

// drawRun draws a sorted run of some keys from lo to hi, each with up to three versions above seq.
func drawRun(t *rapid.T, lo, hi int, seq base.SeqNum) (entries []entry) {
	for i := lo; i < hi; i++ {
		for n := rapid.SampledFrom([]int{0, 0, 1, 1, 3}).Draw(t, "versions"); n > 0; n-- {
			kind := rapid.SampledFrom([]base.Kind{base.KindSet, base.KindDelete, base.KindMerge}).Draw(t, "kind")
			entries = append(entries, entry{fmt.Sprintf("%02d", i), seq + base.SeqNum(n), kind})
		}
	}
	if len(entries) == 0 {
		entries = append(entries, entry{fmt.Sprintf("%02d", lo), seq + 1, base.KindSet})
	}
	return entries
}

// want returns what a lookup of k finds in tables, the newest first: of each the newest visible version.
func want(tables [][]entry, k *Key, at base.SeqNum) (found []string) {
	for _, entries := range tables {
		largest := slices.MaxFunc(entries, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) }).seq
		i := slices.IndexFunc(entries, func(e entry) bool { return e.key == string(k.Key) && e.seq <= at })
		if i < 0 || largest < k.Cover {
			continue
		}
		if found = append(found, string(entries[i].value())); entries[i].kind != base.KindMerge {
			break
		}
	}
	return found
}

// A search finds what a lookup of each key finds, in local files and in remote ones.
func TestFindFindsWhatLookupsFind(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		policy, err := filterpolicy.Parse(rapid.SampledFrom([]string{"none", "bloom:1", "bloom:10"}).Draw(t, "filter"))
		require.NoError(t, err)
		o := sstable.WriterOptions{BlockSize: 100, Compression: sstable.NoCompression, Filter: policy}
		o.IndexPartition = rapid.SampledFrom([]int{0, 32}).Draw(t, "partition")
		var tables [][]entry
		for i := rapid.IntRange(0, 6).Draw(t, "runs"); i > 0; i-- {
			tables = append(tables, drawRun(t, 0, 40, base.SeqNum(100*i)))
		}
		last := [][]entry{drawRun(t, 0, 20, 10), drawRun(t, 20, 40, 20)}
		s := newStore(t, o, tables, last...)
		tables = append(tables, last...)
		s.tables.Far = rapid.Bool().Draw(t, "far")
		if rapid.Bool().Draw(t, "cached") {
			s.tables.Options.CacheSize = 1 << 20
		}
		search, got := s.search(base.SeqNum(rapid.IntRange(1, 700).Draw(t, "at")))
		for range 2 {
			clear(got)
			var keys []*Key
			for i := range rapid.IntRange(1, 60).Draw(t, "keys") {
				k := keysOf(fmt.Sprintf("%02d", rapid.IntRange(0, 42).Draw(t, "key")))[0]
				k.Owner, k.Cover = int32(i), base.SeqNum(rapid.SampledFrom([]int{0, 0, 103, 203, 303}).Draw(t, "cover"))
				keys = append(keys, k)
			}
			search.Find(slices.Clone(keys))
			for i, k := range keys {
				require.NoError(t, k.Err)
				require.Equal(t, want(tables, k, search.At), got[int32(i)], "key %s", k.Key)
			}
		}
	})
}

// A key in a remote table asks one table, then two, then four. In a local one it asks one after the other, and no more
// than a lookup of its own.
func TestRoundsOfRemoteReads(t *testing.T) {
	t.Parallel()
	noFilter, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	var runs [][]entry // each has the bounds, and no filter
	for i := 7; i > 0; i-- {
		seq := base.SeqNum(10 * i)
		runs = append(runs, []entry{{"a", seq, base.KindSet}, {fmt.Sprint("m", i), seq, base.KindSet},
			{"z", seq, base.KindSet}})
	}
	for _, c := range []struct {
		key                 string
		remote, local, read int
	}{
		{"a", 1, 1, 1},  // the newest table
		{"m7", 1, 1, 1}, // the same
		{"m6", 2, 2, 3}, // the second: the third is read at the same time
		{"m1", 3, 7, 7}, // the oldest
		{"m", 3, 7, 7},  // none
		{"zz", 0, 0, 0}, // out of bounds
	} {
		for _, far := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, sstable.WriterOptions{Filter: noFilter}, runs)
				s.tables.Far = far
				for _, r := range s.version.Runs {
					_, err := r.At(0).Open(&s.tables)
					require.NoError(t, err)
				}
				s.reads.Store(0)
				s.delay = time.Second
				began := time.Now()
				search, _ := s.search(base.MaxSeqNum)
				search.Find(keysOf(c.key))
				rounds, reads := c.local, c.local
				if far {
					rounds, reads = c.remote, c.read
				}
				require.Equal(t, time.Duration(rounds)*time.Second, time.Since(began), "%s, remote: %v", c.key, far)
				require.EqualValues(t, reads, s.reads.Load(), "%s, remote: %v", c.key, far)
			})
		}
	}
}

// A block in the cache that answers a key is no reason to read an older table.
func TestACachedBlockNeedsNoRead(t *testing.T) {
	t.Parallel()
	for _, far := range []bool{true, false} {
		s := newStore(t, sstable.WriterOptions{}, [][]entry{{{"a", 20, base.KindSet}}, {{"a", 10, base.KindSet}}})
		s.tables.Far, s.tables.Options.CacheSize = far, 1<<20
		search, _ := s.search(base.MaxSeqNum)
		search.Find(keysOf("a"))
		s.reads.Store(0)
		search.Find(keysOf("a"))
		require.Zero(t, s.reads.Load())
	}
}

// A table that cannot be opened is the error of keys that it may have, and that no newer table answers.
func TestATableThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for _, far := range []bool{true, false} {
		s := newStore(t, sstable.WriterOptions{}, [][]entry{
			{{"a", 30, base.KindSet}, {"b", 30, base.KindMerge}, {"d", 30, base.KindSet}},
			{{"a", 20, base.KindSet}, {"b", 20, base.KindSet}, {"c", 20, base.KindSet}},
			{{"a", 10, base.KindSet}, {"b", 10, base.KindSet}, {"e", 10, base.KindSet}},
		})
		s.broken, s.tables.Far = fileOf(99), far
		search, got := s.search(base.MaxSeqNum)
		keys := keysOf("a", "b", "c", "e")
		search.Find(slices.Clone(keys))
		for i, done := range []bool{true, false, false, true} {
			require.Equal(t, done, keys[i].Done)
		}
		require.NoError(t, keys[0].Err)
		require.ErrorIs(t, keys[1].Err, errBroken)
		require.ErrorIs(t, keys[2].Err, errBroken)
		require.NoError(t, keys[3].Err)
		require.Len(t, got[0], 1)
		require.Len(t, got[1], 1, "the operand")
		require.Empty(t, got[2])
		require.Len(t, got[3], 1)
	}
}

// An error of Answer is the key's, and closes it.
func TestAnErrorOfAnswer(t *testing.T) {
	t.Parallel()
	for _, far := range []bool{true, false} {
		run := []entry{{"a", 10, base.KindSet}, {"b", 10, base.KindSet}}
		s := newStore(t, sstable.WriterOptions{}, [][]entry{{{"a", 20, base.KindSet}, {"b", 20, base.KindSet}}, run})
		s.tables.Far = far
		search, _ := s.search(base.MaxSeqNum)
		calls := 0
		search.Answer = func(k *Key, _ *sstable.Reader, _ *sstable.Lookup) (bool, error) {
			if calls++; string(k.Key) == "a" {
				return false, errBroken
			}
			return true, nil
		}
		keys := keysOf("a", "b")
		search.Find(slices.Clone(keys))
		require.ErrorIs(t, keys[0].Err, errBroken)
		require.True(t, keys[1].Done)
		require.Equal(t, 2, calls)
	}
}

// After Release, the memory that a search keeps for the next refers to nothing of the store.
func TestReleaseForgetsTheStore(t *testing.T) {
	t.Parallel()
	for _, far := range []bool{true, false} {
		var runs [][]entry
		for i := 5; i > 0; i-- {
			var run []entry
			for key := i; key < 300; key += 2 {
				run = append(run, entry{fmt.Sprintf("%03d", key), base.SeqNum(i), base.KindMerge})
			}
			runs = append(runs, run)
		}
		s := newStore(t, sstable.WriterOptions{BlockSize: 100, IndexPartition: 64}, runs)
		s.tables.Far = far
		search, _ := s.search(base.MaxSeqNum)
		for _, n := range []int{3, 200, 7} {
			var keys []string
			for i := range n {
				keys = append(keys, fmt.Sprintf("%03d", 300*i/n))
			}
			search.Find(keysOf(keys...))
		}
		search.Release()
		require.Nil(t, search.Version)
		require.Nil(t, search.Tables)
		require.Nil(t, search.open)
		for _, keys := range [][]*Key{search.ahead, search.here} {
			require.Empty(t, slices.Compact(append(keys[:cap(keys)], nil))[1:])
		}
		for _, probes := range [][]*probe{search.probes, search.unread} {
			require.Empty(t, slices.Compact(append(probes[:cap(probes)], nil))[1:])
		}
		for _, p := range search.memory[:cap(search.memory)] {
			require.Equal(t, probe{}, p)
		}
		for _, l := range search.lookups[:cap(search.lookups)] {
			require.Nil(t, l)
		}
		for _, b := range search.blocks[:cap(search.blocks)] {
			require.Equal(t, block{}, b)
		}
		require.Empty(t, search.leaves.known)
		for _, r := range search.readers {
			require.Nil(t, r.own)
			require.Nil(t, r.shared)
		}
	}
}

// That holds too if a function of the application panics in the middle of a round.
func TestReleaseAfterAPanic(t *testing.T) {
	t.Parallel()
	noFilter, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	s := newStore(t, sstable.WriterOptions{Filter: noFilter}, [][]entry{
		{{"a", 20, base.KindSet}, {"z", 20, base.KindSet}}, {{"a", 10, base.KindSet}, {"z", 10, base.KindSet}}})
	s.tables.Far, s.tables.Options.CacheSize = true, 1<<20
	search, _ := s.search(base.MaxSeqNum)
	search.Find(keysOf("a")) // puts the block of the newest table into the cache
	search.Release()
	search.Version, search.Tables, search.Levels = s.version, &s.tables, &s.levels
	s.tables.OpenFile = func(string) (vfs.ReadFile, error) { panic("a function of the application") }
	require.Panics(t, func() { search.Find(keysOf("m")) })
	require.Len(t, search.memory, 1, "or there is nothing to forget")
	search.Release()
	for _, p := range search.memory[:cap(search.memory)] {
		require.Equal(t, probe{}, p)
	}
}
