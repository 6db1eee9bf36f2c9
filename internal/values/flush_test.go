package values

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/version"
)

// tableOf is an edit that adds a table with a value in each of some blob files.
func tableOf(nums ...uint64) *manifest.Edit {
	t := manifest.Table{Num: 100}
	for _, num := range nums {
		t.Blobs = append(t.Blobs, manifest.BlobRef{Num: num, Records: 1, Bytes: 200})
	}
	return &manifest.Edit{Added: []manifest.AddedTable{{Table: t}}}
}

// A flush lists the files that its tables refer to, once. The others are removed when the memtables are gone.
func TestFlushListsWhatItsTablesReferTo(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	var mems []*memtable.Memtable
	for i := range 3 {
		mem := ts.newMem()
		ts.commit(batch(10, 200), base.SeqNum(2*i+1), ts.newLog(), mem)
		require.NoError(t, ts.Commits().EndLog())
		mems = append(mems, mem)
	}
	require.Positive(t, LogBytes(mems))
	mems[1].Hold(ts.register(ts.File(1)), 0) // two memtables hold the first file
	fl := ts.Flush(mems)
	require.Nil(t, fl.Inline(nil), "all files are whole")
	e := tableOf(1, 3)
	fl.List(e)
	require.Len(t, e.AddedBlobs, 2)
	for i, num := range []uint64{1, 3} {
		require.Equal(t, ts.File(num).BlobFile, e.AddedBlobs[i])
		require.Positive(t, e.AddedBlobs[i].Records)
	}
	v := &version.Version{}
	ts.Cleaner.History.Install(v)
	fl.Installed(v)
	ts.requireFiles(1, 2, 3)
	for _, m := range mems {
		m.Drop()
	}
	require.Empty(t, ts.Files())
	ts.requireFiles(1, 3)
}

// The values of a file that has no end are copied into the tables.
func TestFlushCopiesTheValuesOfAnAbandonedFile(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	mem := ts.newMem()
	record := ts.commit(batch(10, 200), 1, ts.newLog(), mem)
	ts.Commits().Abandon()
	inline := ts.Flush([]*memtable.Memtable{mem}).Inline(&version.Version{})
	for e, err := range batchrepr.All(record) {
		require.NoError(t, err)
		if !e.Key.Kind().Separated() {
			continue
		}
		k, value, err := inline(e.Key, e.Value)
		require.NoError(t, err)
		require.Equal(t, base.KindSet, k.Kind())
		require.Equal(t, make([]byte, 200), value)
		return
	}
	require.Fail(t, "the record has no handle")
}
