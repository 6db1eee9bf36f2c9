package values

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Of a replayed record the values of a log's file are inline again, and the memtable holds streams.
func TestReplayInlinesLogsFilesAndHoldsStreams(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	f, err := ts.Create()
	require.NoError(t, err)
	require.NoError(t, f.Fill([]byte("s"), 1, 500, bytes.NewReader(make([]byte, 500))))
	require.NoError(t, f.Finish())
	b := batch(10, 200)
	b.Add(base.KindSetSeparated, []byte("s"), f.handle.Append(nil))
	record := ts.commit(b, 1, ts.newLog(), ts.newMem())
	require.NotEqual(t, kinds(t, b.Seal(1)), kinds(t, record))

	recovered := New(ts.Config)
	p := Replay{Store: recovered}
	got, err := p.Inline(record, 1)
	require.NoError(t, err)
	require.Equal(t, b.Seal(1), got)
	mem := ts.newMem()
	require.NoError(t, p.Hold(mem, got))
	require.NoError(t, p.Hold(mem, got), "once for all handles")
	require.Len(t, mem.Held(), 1)
	require.Equal(t, f.BlobFile, recovered.File(f.Num).BlobFile)
	p.Close()

	v, err := (&version.Version{}).Apply(&manifest.Edit{Added: tableOf(f.Num).Added,
		AddedBlobs: []manifest.BlobFile{f.BlobFile}})
	require.NoError(t, err)
	require.NoError(t, recovered.CheckListed(&version.Version{}))
	require.ErrorContains(t, recovered.CheckListed(v), "which the manifest says are in tables")
	mem.Drop()
	require.Empty(t, recovered.Files())
}

// A file that cannot be opened is tried once, however many values of it records have.
func TestReplayOpensAMissingFileOnce(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	opens, faults := 0, 0
	ts.Blobs.OpenFile = func(name string) (vfs.ReadFile, error) { opens++; return ts.mem.Open(name) }
	p := Replay{Store: New(ts.Config), Fault: func(err *ValueError) error {
		require.ErrorIs(t, err, base.ErrCorruption)
		require.False(t, err.Torn)
		faults++
		return nil
	}}
	b := batchrepr.Writer{}
	for range 3 {
		b.Add(base.KindSetSeparated, []byte("k"), blob.Handle{File: 9, Offset: 32, Length: 100, Size: 80}.Append(nil))
	}
	_, err := p.Inline(b.Seal(1), 1)
	require.NoError(t, err)
	require.Equal(t, 3, faults)
	require.Equal(t, 1, opens)
}

// A value that is not whole ends the log; a stream that is not, or a file that is missing, is damage.
func TestReplayTellsTornValuesFromDamage(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	record := ts.commit(batch(200, 200), 1, ts.newLog(), ts.newMem())
	whole, err := ts.mem.Open("db/000001.blob")
	require.NoError(t, err)
	size, err := whole.Size()
	require.NoError(t, err)
	data := make([]byte, size)
	_, err = whole.ReadAt(data, 0)
	require.NoError(t, err)
	missing := batchrepr.Writer{}
	missing.Add(base.KindSetSeparated, []byte("k"), blob.Handle{File: 9, Offset: 32, Length: 100, Size: 80}.Append(nil))
	for name, c := range map[string]struct {
		record []byte
		left   int // bytes of the file
		torn   bool
	}{
		"cut in the second value": {record, len(data) - 1, true},
		"cut in the header":       {record, 8, false},
		"missing":                 {missing.Seal(1), len(data), false},
	} {
		f, err := ts.mem.Create("db/000001.blob")
		require.NoError(t, err, name)
		_, err = f.Write(data[:c.left])
		require.NoError(t, err, name)
		require.NoError(t, f.Close(), name)
		p := Replay{Store: New(ts.Config)}
		_, err = p.Inline(c.record, 1)
		if c.torn {
			_, again := p.Inline(c.record, 1)
			require.ErrorContains(t, again, "the next one begins at", "a record is read once")
		}
		p.Close()
		v := &ValueError{}
		require.ErrorAs(t, err, &v, name)
		require.ErrorIs(t, err, base.ErrCorruption, name)
		require.Equal(t, c.torn, v.Torn, name)
	}
}
