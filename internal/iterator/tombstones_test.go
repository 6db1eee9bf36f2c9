package iterator

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// tombstoneWorld is places with range tombstones, and all of those in them.
type tombstoneWorld struct {
	all     []rangedel.Tombstone
	memory  []*rangedel.History
	version *version.Version
	cache   *tablecache.Cache
}

func drawTombstones(t *rapid.T, seq *base.SeqNum, most int) (ts []rangedel.Tombstone) {
	for range rapid.IntRange(1, most).Draw(t, "n") {
		lo := rapid.IntRange(0, 28).Draw(t, "lo")
		*seq++
		tomb := rangedel.Tombstone{Start: letter(lo), End: letter(lo + rapid.IntRange(1, 4).Draw(t, "len")), Seq: *seq}
		if rapid.IntRange(0, 15).Draw(t, "open") == 0 {
			tomb.End = nil
		}
		ts = append(ts, tomb)
	}
	return ts
}

func letter(i int) []byte { return []byte{byte('A' + i)} }

// drawWorld makes memtables, files of level 0 and sorted runs, the oldest first.
func drawWorld(t *rapid.T) *tombstoneWorld {
	w := &tombstoneWorld{}
	fs, num, seq := vfs.NewMem(), uint64(0), base.SeqNum(0)
	require.NoError(t, fs.MkdirAll("d"))
	path := func(n uint64) string { return "d/" + manifest.FileName(manifest.FileTable, n) }
	w.cache = &tablecache.Cache{Path: path, OpenFile: fs.Open, Log: slog.Default()}
	e := &manifest.Edit{}
	for _, level := range []int{6, 5, 0, 0, 0} {
		ts := drawTombstones(t, &seq, 10)
		w.all = append(w.all, ts...)
		out := &tablemeta.Writer{FS: fs, Dir: "d", Log: slog.Default(), Tombstones: rangedel.NewSet(ts),
			NewNum:  func() uint64 { num++; return num },
			Wrap:    func(f vfs.WriteFile) vfs.WriteFile { return f },
			Options: &sstable.WriterOptions{}}
		if level > 0 { // several tables, some of them with entries alone
			out.TargetSize = 1 << 30
			for i := range 30 {
				if rapid.IntRange(0, 5).Draw(t, "cut") == 0 {
					require.NoError(t, out.Cut(letter(i)))
					require.NoError(t, out.Add(base.MakeKey(letter(i), seq, base.KindSet), nil))
				}
			}
		}
		tables, err := out.Finish()
		require.NoError(t, err)
		for _, table := range tables {
			e.Added = append(e.Added, manifest.AddedTable{Level: level, Table: table})
		}
	}
	var err error
	w.version, err = (&version.Version{}).Apply(e)
	require.NoError(t, err)
	for range 2 {
		ts := drawTombstones(t, &seq, 10)
		w.all = append(w.all, ts...)
		var h *rangedel.History
		for _, tomb := range ts {
			h = h.Add([]rangedel.Tombstone{tomb})
		}
		w.memory = append(w.memory, h)
	}
	return w
}

func (w *tombstoneWorld) cover(key []byte, at base.SeqNum) (seq base.SeqNum) {
	for _, t := range w.all {
		if t.Seq <= at && bytes.Compare(t.Start, key) <= 0 && (t.End == nil || bytes.Compare(key, t.End) < 0) {
			seq = max(seq, t.Seq)
		}
	}
	return seq
}

// TestTombstonesAgainstNaive asks for keys in any order, and holds the answers, the spans
// around them, and those of a lookup, against a look at every tombstone.
func TestTombstonesAgainstNaive(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		defer w.version.All(func(_ int, table *version.Table) { require.NoError(t, w.cache.Close(&table.Entry)) })
		var ts Tombstones
		for range 3 {
			at := base.SeqNum(rapid.IntRange(0, len(w.all)+1).Draw(t, "at"))
			lo, hi := 0, 32
			var lower, upper []byte
			if rapid.Bool().Draw(t, "bounded") {
				lo = rapid.IntRange(0, 31).Draw(t, "lower")
				hi = rapid.IntRange(lo+1, 32).Draw(t, "upper")
				lower, upper = letter(lo), letter(hi)
			}
			ts.Init(w.version, w.cache, lower, upper, at)
			for _, h := range w.memory {
				ts.AddMemory(h)
			}
			at0 := lo
			for range 40 {
				if at0 += rapid.IntRange(-1, 2).Draw(t, "step"); at0 >= hi || at0 < lo ||
					rapid.IntRange(0, 9).Draw(t, "seek") == 0 {
					at0 = rapid.IntRange(lo, hi-1).Draw(t, "key")
				}
				requireTombstone(t, w, &ts, at0, at)
			}
			ts.Release()
			require.True(t, ts.Empty())
		}
	})
}

func requireTombstone(t *rapid.T, w *tombstoneWorld, ts *Tombstones, i int, at base.SeqNum) {
	key := letter(i)
	want := w.cover(key, at)
	start, end, seq, err := ts.Cover(key)
	require.NoError(t, err)
	require.Equal(t, want, seq, "over %q as of %d", key, at)
	inTables, err := w.version.TombstoneCover(w.cache, key, at)
	require.NoError(t, err)
	require.Equal(t, want, max(inTables, w.memory[0].Cover(key, at), w.memory[1].Cover(key, at)))
	if seq == 0 {
		return
	}
	require.LessOrEqual(t, bytes.Compare(start, key), 0)
	for j := range 40 {
		if other := letter(j); holds(start, end, other) {
			require.GreaterOrEqual(t, w.cover(other, at), seq, "%q is in the span of %q", other, key)
		}
	}
}
