package kv

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
)

func int64Value(n int64) []byte { return AppendInt64(nil, n) }

func mergeAll(tb testing.TB, db *DB, key string, operands ...string) {
	tb.Helper()
	for _, o := range operands {
		require.NoError(tb, db.Merge([]byte(key), []byte(o), NoSync))
	}
}

func requireValue(tb testing.TB, db Reader, key, want string) {
	tb.Helper()
	v, err := db.Get([]byte(key))
	require.NoError(tb, err)
	require.Equal(tb, want, string(v))
}

// onEveryStage calls check with writes in a memtable, in a table, in two, and in the
// last level.
func onEveryStage(tb testing.TB, db *DB, write, check func(stage string)) {
	tb.Helper()
	write("memtable")
	check("memtable")
	require.NoError(tb, db.Flush(tb.Context()))
	check("a table")
	write("over a table")
	check("over a table")
	require.NoError(tb, db.Flush(tb.Context()))
	check("two tables")
	require.NoError(tb, db.Compact(tb.Context(), nil, nil))
	check("the last level")
	require.Zero(tb, db.Metrics().Levels[lastLevel].Merges, "values are left, no operands")
}

func TestCounters(t *testing.T) {
	db := openMem(t, &Options{Merger: Int64Add})
	sum := int64(0)
	onEveryStage(t, db, func(string) {
		for i := range int64(100) {
			require.NoError(t, db.Merge([]byte("n"), int64Value(i-30), Async))
			sum += i - 30
		}
	}, func(stage string) {
		v, err := db.Get([]byte("n"))
		require.NoError(t, err)
		n, err := Int64(v)
		require.NoError(t, err)
		require.Equal(t, sum, n, stage)
		ok, err := db.Has([]byte("n"))
		require.NoError(t, err)
		require.True(t, ok, stage)
	})
	require.NotZero(t, db.Metrics().OperandsMerged)
}

func TestAMergerIsNeeded(t *testing.T) {
	db := openMem(t, nil)
	require.ErrorIs(t, db.Merge([]byte("k"), []byte("1"), nil), ErrNoMerger)
	b := db.NewBatch()
	require.ErrorIs(t, b.Merge([]byte("k"), []byte("1")), ErrNoMerger)
	require.ErrorIs(t, b.Commit(nil), ErrNoMerger)
	require.ErrorIs(t, db.Merge(make([]byte, MaxKeySize+1), nil, nil), ErrNoMerger)
	db = openMem(t, &Options{Merger: Int64Add})
	require.ErrorIs(t, db.Merge(make([]byte, MaxKeySize+1), nil, nil), ErrTooLarge)
	for _, name := range []string{"", strings.Repeat("x", maxMergerName+1)} {
		_, err := Open("db", &Options{InMemory: true, Merger: NewMerger(name, nil)})
		require.ErrorIs(t, err, ErrInvalidOptions)
	}
}

func TestAClosedStoreSaysSoBeforeWhatElseIsWrong(t *testing.T) {
	for _, merger := range []Merger{nil, Int64Add} {
		db := openMem(t, &Options{Merger: merger})
		b := db.NewBatch()
		require.NoError(t, db.Close())
		require.ErrorIs(t, db.Merge([]byte("k"), []byte("1"), nil), ErrClosed)
		require.ErrorIs(t, db.Set(make([]byte, MaxKeySize+1), nil, nil), ErrClosed)
		if merger == nil {
			continue
		}
		require.NoError(t, b.Merge([]byte("k"), int64Value(1)), "batches are filled, and then refused")
		require.ErrorIs(t, b.Commit(nil), ErrClosed)
	}
}

// The store keeps the merger's name as long as it holds operands.
func TestTheMergerStaysTheSame(t *testing.T) {
	t.Parallel()
	for _, flush := range []bool{false, true} {
		t.Run(fmt.Sprintf("flush=%t", flush), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "db")
			mine := NewMerger("mine", modelMerger.Merge)
			db := openDir(t, dir, &Options{Merger: mine})
			set(t, db, "plain", "1")
			mergeAll(t, db, "k", "a", "b")
			if flush {
				require.NoError(t, db.Flush(t.Context()))
			}
			require.NoError(t, db.Close())

			before := readDir(t, dir)
			_, err := Open(dir, &Options{Merger: Int64Add})
			require.ErrorIs(t, err, ErrInvalidOptions)
			require.ErrorContains(t, err, `"mine"`)
			_, err = Open(dir, &Options{Merger: Int64Add, ReadOnly: true})
			require.ErrorIs(t, err, ErrInvalidOptions)
			require.Equal(t, before, readDir(t, dir), "nothing was touched")

			// Without a merger other keys can be read and written, and nothing is lost.
			for _, o := range []*Options{{ReadOnly: true}, {}} {
				db = openDir(t, dir, o)
				requireValue(t, db, "plain", "1")
				_, err = db.Get([]byte("k"))
				require.ErrorIs(t, err, ErrNoMerger)
				ok, err := db.Has([]byte("k"))
				require.NoError(t, err)
				require.True(t, ok)
				it, err := db.NewIter(nil)
				require.NoError(t, err)
				for _, move := range []func() bool{it.First, it.Last,
					func() bool { return it.SeekGE([]byte("l")) && it.Prev() }} {
					move()
					if !it.Valid() {
						require.ErrorIs(t, it.Error(), ErrNoMerger)
						require.ErrorContains(t, it.Error(), `"k"`)
					} else {
						require.Equal(t, "plain", string(it.Key()))
					}
				}
				require.ErrorIs(t, it.Close(), ErrNoMerger)
				if !o.ReadOnly {
					require.ErrorIs(t, db.Merge([]byte("k"), []byte("c"), nil), ErrNoMerger)
					set(t, db, "plain", "1")
					require.NoError(t, db.Compact(t.Context(), nil, nil))
				}
				require.NoError(t, db.Close())
			}
			require.NoError(t, Verify(t.Context(), dir, io.Discard))

			db = openDir(t, dir, &Options{Merger: mine})
			requireValue(t, db, "k", "a,b")
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			require.NoError(t, db.Close())
			// No operand is left, so any merger will do.
			db = openDir(t, dir, &Options{Merger: Append(";")})
			mergeAll(t, db, "k", "c")
			requireValue(t, db, "k", "a,b;c")
			require.NoError(t, db.Close())
			// One of this package is found by its name.
			db = openDir(t, dir, nil)
			requireValue(t, db, "k", "a,b;c")
			require.NoError(t, db.Close())
		})
	}
}

// features returns what a store's manifest says.
func manifestFeatures(t *testing.T, fs vfs.FS, dir string) (f manifest.Features, merger string) {
	t.Helper()
	num, err := manifest.Current(fs, dir)
	require.NoError(t, err)
	require.NoError(t, manifest.Load(fs, dir, num, func(e *manifest.Edit) error {
		f |= e.Features
		if e.Merger != "" {
			merger = e.Merger
		}
		return nil
	}))
	return f, merger
}

// A manifest says that there are operands before a log has one, and no sooner; it
// forgets it when they are gone.
func TestTheManifestSaysWhatTheStoreHolds(t *testing.T) {
	fs := vfs.NewMem()
	clock := &storetest.Clock{}
	open := func() *DB {
		return openDir(t, "db", &Options{harness: harness.Harness{FS: fs}, Merger: modelMerger, Clock: clock.Time})
	}
	db := open()
	set(t, db, "k", "v")
	f, name := manifestFeatures(t, fs, "db")
	require.Zero(t, f)
	require.Empty(t, name)
	require.NoError(t, db.SetTTL([]byte("t"), nil, 1e9, Async))
	f, name = manifestFeatures(t, fs, "db")
	require.Equal(t, manifest.FeatureTTL, f)
	require.Empty(t, name)
	require.NoError(t, db.Merge([]byte("k"), []byte("w"), Async))
	f, name = manifestFeatures(t, fs, "db")
	require.Equal(t, manifest.FeatureTTL|manifest.FeatureMerge, f)
	require.Equal(t, modelMerger.Name(), name)

	require.NoError(t, db.Checkpoint(t.Context(), "copy"))
	f, name = manifestFeatures(t, fs, "copy")
	require.Equal(t, manifest.FeatureTTL|manifest.FeatureMerge, f)
	require.Equal(t, modelMerger.Name(), name)
	copied := openDir(t, "copy", &Options{harness: harness.Harness{FS: fs}, Clock: clock.Time})
	requireValue(t, copied, "k", "v,w")
	require.NoError(t, copied.Close())

	e := db.snapshotEdit(db.installed()) // a manifest that is rotated says it too
	require.Equal(t, manifest.FeatureTTL|manifest.FeatureMerge, e.Features)
	require.Equal(t, modelMerger.Name(), e.Merger)

	clock.Advance(1e9)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())
	db = open()
	f, name = manifestFeatures(t, fs, "db")
	require.Zero(t, f)
	require.Empty(t, name)
	requireContents(t, storetest.Model{"k": "v,w"}, db)
	require.NoError(t, db.Close())
}

// If the manifest cannot be told, no operand gets into a log, where a program that
// does not know them would find it.
func TestNoOperandBeforeTheManifestKnows(t *testing.T) {
	t.Parallel()
	for calls := range 3 { // of the write and the sync of the manifest, and none
		mem, left := crashfs.NewDisk(), -1
		fs := crashfs.New(mem, func() error {
			if left--; left == -1 {
				return errors.New("disk")
			}
			return nil
		})
		db := openDir(t, "db", &Options{harness: harness.Harness{FS: fs}, Merger: modelMerger})
		set(t, db, "k", "v")
		left = calls
		err := db.Merge([]byte("k"), []byte("w"), NoSync)
		disk := crashfs.New(mem.CutTo(100, rand.New(rand.NewPCG(1, 1))), nothing)
		f, _ := manifestFeatures(t, disk, "db")
		if calls < 2 {
			require.ErrorContains(t, err, "disk")
			requireValue(t, db, "k", "v")
		} else {
			require.Equal(t, manifest.FeatureMerge, f)
		}
		require.Error(t, errors.Join(err, db.Close()), "a write has failed")
		again := openDir(t, "db", &Options{harness: harness.Harness{FS: disk}, Merger: modelMerger})
		if f == 0 {
			requireValue(t, again, "k", "v")
		}
		require.NoError(t, again.Close())
	}
}

// A failing merger costs an error for the key, and nothing that was written.
func TestAMergerThatFails(t *testing.T) {
	boom := errors.New("boom")
	broken := true // from the start on: a merge that Merge does ahead would hide it from some lookups
	m := NewMerger("brittle", func(key, older, newer []byte) ([]byte, error) {
		switch {
		case broken && string(key) == "panics":
			panic("oh no")
		case broken && string(key) == "fails":
			return nil, boom
		}
		return modelMerger.Merge(key, older, newer)
	})
	db := openMem(t, &Options{Merger: m})
	check := func(stage string) {
		for _, key := range []string{"fails", "panics"} {
			_, err := db.Get([]byte(key))
			var me *MergeError
			require.ErrorAs(t, err, &me, stage)
			require.ErrorIs(t, err, ErrMergeFailed)
			require.Equal(t, MergeError{Merger: "brittle", Key: []byte(key), Cause: me.Cause}, *me)
			require.Equal(t, key == "fails", errors.Is(err, boom))
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			require.False(t, it.First())
			require.ErrorIs(t, it.Error(), ErrMergeFailed)
			require.True(t, it.Last())
			require.False(t, it.Prev())
			require.ErrorIs(t, it.Error(), ErrMergeFailed)
			require.True(t, it.SeekGE([]byte("q")), "an iterator can pass by")
			require.ErrorIs(t, errors.Join(it.Error(), it.Close()), nil)
		}
		requireValue(t, db, "works", "1,2,3")
	}
	set(t, db, "fails", "0")
	for _, key := range []string{"fails", "panics", "works"} {
		mergeAll(t, db, key, "1", "2", "3")
	}
	check("memtable")
	require.NoError(t, db.Flush(t.Context()))
	check("table")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	check("last level")
	set(t, db, "a", "the store still takes writes")
	require.NoError(t, db.Delete([]byte("a"), nil))
	require.NotZero(t, db.Metrics().MergeFailures)
	require.NotZero(t, db.Metrics().Levels[lastLevel].Merges)
	broken = false
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	requireContents(t, storetest.Model{"fails": "0,1,2,3", "panics": "1,2,3", "works": "1,2,3"}, db)
	require.Zero(t, db.Metrics().Levels[lastLevel].Merges)
}

// The value that a merger may write into is not one that somebody else sees.
func TestAMergerOwnsOnlyOlder(t *testing.T) {
	wild := NewMerger("wild", func(_, older, newer []byte) ([]byte, error) {
		for i := range older {
			older[i] ^= newer[0]
		}
		return older, nil
	})
	db := openMem(t, &Options{Merger: wild})
	set(t, db, "k", "\x0f")
	mergeAll(t, db, "k", "\x01", "\x02")
	for range 3 {
		requireValue(t, db, "k", "\x0c")
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		require.True(t, it.First())
		require.Equal(t, "\x0c", string(it.Value()))
		require.True(t, it.Last())
		require.Equal(t, "\x0c", string(it.Value()))
		require.NoError(t, it.Close())
		require.NoError(t, db.Flush(t.Context()))
	}
}

func TestGetOfAPlainValueAllocatesNothing(t *testing.T) {
	db := openMem(t, &Options{Merger: Int64Add})
	set(t, db, "plain", "value")
	require.NoError(t, db.SetTTL([]byte("ttl"), []byte("value"), MaxTTL, nil))
	buf := make([]byte, 0, 64)
	for range 2 {
		for _, key := range []string{"plain", "ttl", "absent"} {
			k := []byte(key)
			allocs := testing.AllocsPerRun(100, func() { buf, _ = db.AppendGet(buf[:0], k) })
			if storetest.RaceFactor == 1 {
				require.Zero(t, allocs, key)
			}
		}
		require.NoError(t, db.Flush(t.Context()))
	}
}

// Snapshots see the operands of their time.
func TestSnapshotsOfACounter(t *testing.T) {
	db := openMem(t, &Options{Merger: Int64Add})
	var snapshots []*Snapshot
	for i := range int64(50) {
		require.NoError(t, db.Merge([]byte("n"), int64Value(1), Async))
		if i%5 == 0 {
			snapshots = append(snapshots, db.NewSnapshot())
		}
		if i%17 == 0 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	closed := 0
	check := func() {
		for i := closed; i < len(snapshots); i++ {
			requireValue(t, snapshots[i], "n", string(int64Value(int64(5*i+1))))
		}
		requireValue(t, db, "n", string(int64Value(50)))
	}
	check()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	check()
	for ; closed < len(snapshots); check() {
		require.NoError(t, snapshots[closed].Close())
		closed++
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
}

// countingMerger is Int64Add that counts its calls.
type countingMerger struct{ calls atomic.Int64 }

func (*countingMerger) Name() string { return "counting" }

func (m *countingMerger) Merge(key, older, newer []byte) ([]byte, error) {
	m.calls.Add(1)
	return Int64Add.Merge(key, older, newer)
}

// However many operands a counter has in the memtable, a reader combines few of them.
func TestACounterWithManyOperands(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "writes of one goroutine")
	const operands, few = 100_000, 400
	m := &countingMerger{}
	dir := t.TempDir()
	db := openWriter(t, dir, &Options{Merger: m})
	key := []byte("n")
	require.NoError(t, db.Set([]byte("m"), int64Value(7), Async))
	require.NoError(t, db.Set([]byte("o"), int64Value(9), Async))
	b := db.NewBatch()
	for i := range int64(operands) {
		if i%10_000 > 100 { // mostly in large batches
			require.NoError(t, b.Merge(key, int64Value(i)))
			if b.Len() < 1_000 {
				continue
			}
		}
		require.NoError(t, b.Commit(Async))
		b.Reset()
		require.NoError(t, db.Merge(key, int64Value(0), Async))
	}
	require.NoError(t, b.Commit(NoSync))
	require.Zero(t, db.Metrics().Flushes)
	sum := int64(0)
	for i := range int64(operands) {
		if i%10_000 > 100 {
			sum += i
		}
	}
	want := string(int64Value(sum))

	check := func(name string, r Reader, read func(r Reader) string) {
		m.calls.Store(0)
		require.Equal(t, want, read(r), name)
		require.Less(t, m.calls.Load(), int64(few), name)
	}
	iterate := func(move func(it *Iterator) bool) func(r Reader) string {
		return func(r Reader) string {
			it, err := r.NewIter(nil)
			require.NoError(t, err)
			defer func() { require.NoError(t, it.Close()) }()
			require.True(t, move(it))
			require.Equal(t, "n", string(it.Key()))
			return string(it.Value())
		}
	}
	readers := func(name string, r Reader) {
		check(name+" Get", r, func(r Reader) string {
			v, err := r.Get(key)
			require.NoError(t, err)
			return string(v)
		})
		check(name+" Next", r, iterate(func(it *Iterator) bool { return it.First() && it.Next() }))
		check(name+" Prev", r, iterate(func(it *Iterator) bool { return it.Last() && it.Prev() }))
		check(name+" SeekGE", r, iterate(func(it *Iterator) bool { return it.SeekGE(key) }))
		check(name+" SeekLT", r, iterate(func(it *Iterator) bool { return it.SeekLT([]byte("o")) }))
		check(name+" turn", r, iterate(func(it *Iterator) bool {
			return it.SeekGE(key) && it.Next() && it.Prev() && it.Prev() && it.Next()
		}))
	}
	readers("DB", db)
	check("MultiGet", db, func(Reader) string {
		values, err := db.MultiGet([][]byte{[]byte("m"), key})
		require.NoError(t, err)
		return string(values[1])
	})
	readers("follower", openView(t, dir, &Options{Merger: m}))
	snapshot := db.NewSnapshot()
	require.NoError(t, db.Merge(key, int64Value(1), Async))
	require.NoError(t, db.DeleteRange([]byte("a"), []byte("z"), Async))
	readers("Snapshot", snapshot)
	_, err := db.Get(key)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, snapshot.Close())
}

// A range tombstone among the operands ends the value for those who see it.
func TestARangeTombstoneAmongOperands(t *testing.T) {
	db := openMem(t, &Options{Merger: Int64Add})
	key := []byte("n")
	add := func(n int) {
		for range n {
			require.NoError(t, db.Merge(key, int64Value(1), Async))
		}
	}
	add(1_000)
	before := db.NewSnapshot()
	require.NoError(t, db.DeleteRange([]byte("a"), []byte("z"), Async))
	deleted := db.NewSnapshot()
	for n := range int64(200) {
		add(1)
		requireValue(t, db, "n", string(int64Value(n+1)))
		requireValue(t, before, "n", string(int64Value(1_000)))
	}
	_, err := deleted.Get(key)
	require.ErrorIs(t, err, ErrNotFound)
	after := db.NewSnapshot()
	require.NoError(t, db.Flush(t.Context()))
	for _, s := range []struct {
		r    Reader
		want int64
	}{{before, 1_000}, {after, 200}, {db, 200}} {
		requireValue(t, s.r, "n", string(int64Value(s.want)))
	}
	for _, s := range []*Snapshot{before, deleted, after} {
		require.NoError(t, s.Close())
	}
}

// A merger may return newer, and overwrite what it gets as older afterwards: the operands in the
// store stay as they are.
func TestAMergerMayReturnNewer(t *testing.T) {
	longest := NewMerger("longest", func(_, older, newer []byte) ([]byte, error) {
		if len(newer) >= len(older) {
			return newer[1:], nil
		}
		copy(older, "XX")
		return older, nil
	})
	db, err := Open("", &Options{InMemory: true, Merger: longest})
	require.NoError(t, err)
	key := []byte("key")
	require.NoError(t, db.Merge(key, []byte("a"), NoSync))
	require.NoError(t, db.Merge(key, []byte("-bb"), NoSync))
	s := db.NewSnapshot()
	require.NoError(t, db.Merge(key, []byte("c"), NoSync))
	for range 2 {
		v, err := s.Get(key)
		require.NoError(t, err)
		require.Equal(t, "bb", string(v))
		v, err = db.Get(key)
		require.NoError(t, err)
		require.Equal(t, "XX", string(v))
	}
	require.NoError(t, s.Close())
	require.NoError(t, db.Close())
}

// An operand that Int64Add can combine with nothing is refused when it is written, whatever writes it.
func TestAnOperandThatIsNoCounterIsRefused(t *testing.T) {
	t.Parallel()
	db := openMem(t, &Options{Merger: Int64Add})
	k := []byte("k")
	refused := func(err error) {
		t.Helper()
		e, ok := errors.AsType[*MergeError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "k", string(e.Key))
		require.ErrorIs(t, err, ErrMergeFailed)
		require.ErrorContains(t, err, "a counter has 8 bytes, this value has 2")
	}
	refused(db.Merge(k, []byte("12"), nil))
	b := db.NewBatch()
	refused(b.Merge(k, []byte("12")))
	refused(b.Commit(nil))
	refused(db.Update(func(tx *Tx) error { return tx.Merge(k, []byte("12")) }))

	lists := openMem(t, &Options{Merger: Append("")}).NewBatch()
	require.NoError(t, errors.Join(lists.Merge(k, int64Value(1)), lists.Merge(k, []byte("12"))))
	b.Reset()
	refused(b.Append(lists))
	require.Zero(t, b.Len())
	requireContents(t, storetest.Model{}, db)
	require.NoError(t, db.Merge(k, int64Value(1), nil))
}
