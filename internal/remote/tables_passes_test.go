package remote

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/objstore"
)

// writeTable writes a table of n keys, and returns what there is to know of it.
func (r *rig) writeTable(t *testing.T, name string, n int, o *sstable.WriterOptions) *sstable.FileInfo {
	t.Helper()
	f, err := r.Create(name)
	require.NoError(t, err)
	w := sstable.NewWriter(f, o)
	for i := range n {
		require.NoError(t, w.Add(base.MakeKey(tableKey(i), base.SeqNum(n-i), base.KindSet), noise(uint64(i), 100)))
	}
	info, err := w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	return info
}

func tableKey(i int) []byte { return fmt.Appendf(nil, "key%08d", i) }

// open opens a table as a store does, which knows how long its end is.
func (r *rig) open(t *testing.T, name string, info *sstable.FileInfo) *sstable.Reader {
	t.Helper()
	reader, err := sstable.NewReader(r.Open(name, info.Size), info.Size,
		&sstable.ReaderOptions{TailSize: info.TailSize, ID: info.ID, CacheSize: 64 << 10})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reader.Close()) })
	return reader
}

// Passes over tables cost a request for a part, lookups a request for a block, and opening one or none.
func TestTablesCostFewRequests(t *testing.T) {
	const keys, part = 20000, 256 << 10
	for _, partition := range []int{1 << 20, 1 << 10} {
		r := newRig(t, TableOptions{PartSize: part})
		o := &sstable.WriterOptions{IndexPartition: partition, ID: 7}
		info := r.writeTable(t, "000001.sst", keys, o)
		var table *sstable.Reader
		require.Zero(t, r.requests(objstore.Get, func() { table = r.open(t, "000001.sst", info) }), "just written")
		require.EqualValues(t, 1, r.requests(objstore.Get, func() { table = r.open(t, "000001.sst", info) }))

		parts := (int64(table.Properties().DataBytes) + part - 1) / part
		require.Greater(t, parts, int64(5))
		leaves := min(int64(table.Properties().IndexLeaves), 1)
		require.Equal(t, partition < 1<<20, leaves > 0)
		for _, sequential := range []bool{false, true} {
			n := 0
			requests := r.requests(objstore.Get, func() {
				it := table.NewIter(sstable.IterOptions{Sequential: sequential})
				for ok := it.First(); ok; ok = it.Next() {
					require.Equal(t, tableKey(n), it.User())
					n++
				}
				require.NoError(t, it.Error())
			})
			require.Equal(t, keys, n)
			require.LessOrEqual(t, requests, parts+leaves+3)
		}
		require.NoError(t, table.Verify())

		before := r.counts.Snapshot()
		for i := range 100 {
			k := tableKey(i * keys / 100)
			_, _, ok, err := table.Find(nil, k, filterpolicy.Hash(k), base.MaxSeqNum, new(sstable.Probe))
			require.NoError(t, err)
			require.True(t, ok)
		}
		got := r.counts.Snapshot().Minus(before)[objstore.Get]
		require.LessOrEqual(t, got.Requests, 100*(1+leaves))
		require.LessOrEqual(t, got.Bytes, 100*(5<<10)*(1+leaves), "blocks, not parts")
	}
}
