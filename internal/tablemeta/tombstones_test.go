package tablemeta

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// TestTombstonesAreCutIntoTables writes entries and many range tombstones: tables stay within
// their size, do not overlap, and have all entries and all tombstones between them.
func TestTombstonesAreCutIntoTables(t *testing.T) {
	key := func(i int) []byte { return fmt.Appendf(nil, "key%05d", i) }
	property.Check(t, func(t *rapid.T) {
		var ts []rangedel.Tombstone
		n := rapid.IntRange(0, 400).Draw(t, "tombstones")
		for i := range n {
			lo := rapid.IntRange(0, 500).Draw(t, "lo")
			ts = append(ts, rangedel.Tombstone{Start: key(lo), End: key(lo + rapid.IntRange(1, 9).Draw(t, "n")),
				Seq: base.SeqNum(i/100 + 1)})
		}
		set := rangedel.NewSet(ts)
		fs, num := vfs.NewMem(), uint64(0)
		const target = 1 << 10
		w := &Writer{FS: fs, Dir: "d", Log: slog.Default(), TargetSize: target, Tombstones: set,
			NewNum:  func() uint64 { num++; return num },
			Wrap:    func(f vfs.WriteFile) vfs.WriteFile { return f },
			Options: &sstable.WriterOptions{}}
		require.NoError(t, fs.MkdirAll("d"))
		var entries []int
		for i := range 500 {
			if rapid.IntRange(0, 60).Draw(t, "entry") == 0 {
				entries = append(entries, i)
				for seq := base.SeqNum(9); seq > 6; seq-- { // versions that stay together
					require.NoError(t, w.Add(base.MakeKey(key(i), seq, base.KindDelete), nil))
				}
			}
		}
		tables, err := w.Finish()
		require.NoError(t, err)
		var all []rangedel.Tombstone
		found := uint64(0)
		for i, m := range tables {
			require.True(t, i == 0 || tables[i-1].Before(m.Smallest))
			found += m.Entries
			of, size := tombstonesOf(t, fs, &m)
			const fragments = 8 * 32 // two with four tombstones each, at the ends
			require.LessOrEqual(t, size, int64(target+fragments), "the table could have been cut")
			all = append(all, of...)
		}
		require.EqualValues(t, 3*len(entries), found)
		again := rangedel.NewSet(all)
		for i := range 510 {
			for at := range base.SeqNum(6) {
				require.Equal(t, set.Cover(key(i), at), again.Cover(key(i), at))
			}
		}
	})
}

func tombstonesOf(t require.TestingT, fs vfs.FS, m *manifest.Table) (ts []rangedel.Tombstone, bytes int64) {
	f, err := fs.Open("d/" + manifest.FileName(manifest.FileTable, m.Num))
	require.NoError(t, err)
	r, err := sstable.NewReader(f, m.Size, nil)
	require.NoError(t, err)
	ts = r.Tombstones().Clip(nil, nil, nil)
	for _, tomb := range ts {
		bytes += tombstoneBytes(tomb)
		require.True(t, m.Overlaps(tomb.Start, tomb.End))
	}
	require.NoError(t, r.Close())
	return ts, bytes
}
