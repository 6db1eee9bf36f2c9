package iterator

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// A memtable is merged for its points: one of range tombstones alone would only be one
// more sequence to seek in.
func TestAMemtableWithoutPointsIsNoSource(t *testing.T) {
	var deletes, points batchrepr.Writer
	deletes.Add(base.KindRangeDelete, []byte("a"), rangedel.AppendEnd(nil, []byte("b")))
	points.Add(base.KindSet, []byte("a"), nil)
	m := memtable.New(memtable.Slack)
	var s Sources
	for n, w := range []*batchrepr.Writer{{}, &deletes, &points} {
		if w.Len() > 0 {
			require.NoError(t, m.Apply(w.Seal(base.SeqNum(n))))
		}
		s.AddMemtable(m)
		require.Len(t, s.Iters, n/2)
	}
}

// What an iterator over many runs leaves behind for the next is bounded, whatever the size
// of their blocks; few sequences of short blocks keep all they have.
func TestReleasedSourcesKeepFewBytes(t *testing.T) {
	for _, c := range []struct{ block, sequences int }{{100 << 10, 200}, {4 << 10, 10}} {
		var file bytes.Buffer
		w := sstable.NewWriter(&file, &sstable.WriterOptions{ID: 1, BlockSize: c.block})
		for i := range 10 {
			key := base.MakeKey([]byte{byte(i)}, 1, base.KindSet)
			require.NoError(t, w.Add(key, bytes.Repeat([]byte{byte(i)}, c.block/2)))
		}
		_, err := w.Finish()
		require.NoError(t, err)
		r, err := sstable.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), nil)
		require.NoError(t, err)
		var s Sources
		for range 3 { // the bound is no bound of one use
			for len(s.runs) < c.sequences {
				s.runs = append(s.runs, &Run{})
			}
			s.usedRuns = len(s.runs)
			for _, it := range s.runs {
				it.run = &version.Run{}
				it.it.Init(r, sstable.IterOptions{})
				require.True(t, it.it.First())
			}
			s.Release()
			kept := 0
			for _, it := range s.runs {
				kept += it.it.Kept()
			}
			require.LessOrEqual(t, kept, maxRetainedBytes)
			require.GreaterOrEqual(t, kept, min(c.sequences*c.block, maxRetainedBytes/2))
			if c.sequences == 10 {
				require.Len(t, s.runs, 10)
			}
		}
		require.NoError(t, r.Close())
	}
}
