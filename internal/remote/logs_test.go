package remote

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

func recoverLogs(t *testing.T, store objstore.Store, from, oldest, epoch uint64) (*Logs, []Log) {
	t.Helper()
	s := eager(New(store, "log/", Options{Store: 1}))
	logs, found, err := Recover(t.Context(), s, from, oldest, epoch, LogOptions{Interval: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, logs.Close()) })
	return logs, found
}

func TestLogsShareAPutInTheOrderOfWrites(t *testing.T) {
	mem := objstore.NewMem()
	logs, found := recoverLogs(t, mem, 0, 0, 1)
	require.Empty(t, found)
	five, err := logs.Create(5)
	require.NoError(t, err)
	_, err = five.Write([]byte("abc"))
	require.NoError(t, err)
	six, err := logs.Create(6)
	require.NoError(t, err)
	_, err = six.Write([]byte("123"))
	require.NoError(t, err)
	_, err = five.Write([]byte("def"))
	require.NoError(t, err)
	require.NoError(t, five.Close())
	require.NoError(t, six.Sync())
	require.NoError(t, six.Sync(), "nothing is left to put")
	require.Equal(t, uint64(3), logs.Writer().Next())
	_, err = six.Write([]byte("456"))
	require.NoError(t, err)
	require.NoError(t, logs.Flush())
	_, err = five.Write(nil)
	require.ErrorIs(t, err, fs.ErrClosed)
	require.Equal(t, uint64(2), logs.Start(5))
	require.Equal(t, uint64(2), logs.Start(6))
	require.Equal(t, uint64(4), logs.Start(7))

	_, found = recoverLogs(t, mem, 0, 0, 2)
	require.Equal(t, []Log{{5, []byte("abcdef")}, {6, []byte("123456")}}, found)
	_, found = recoverLogs(t, mem, 2, 6, 3)
	require.Equal(t, []Log{{6, []byte("123456")}}, found)
	_, err = six.Write([]byte("late"))
	require.NoError(t, err)
	requireFenced(t, six.Sync(), 2)
	_, err = logs.Create(7)
	requireFenced(t, err, 2)
}

func TestAMissingObjectOfTheLogIsCorruption(t *testing.T) {
	mem := objstore.NewMem()
	logs, _ := recoverLogs(t, mem, 0, 0, 1)
	f, err := logs.Create(5)
	require.NoError(t, err)
	for range 4 {
		_, err := f.Write([]byte("abc"))
		require.NoError(t, err)
		require.NoError(t, f.Sync())
	}
	s := eager(New(mem, "log/", Options{Store: 1}))
	require.NoError(t, mem.Delete(t.Context(), s.key(3)))
	_, _, err = Recover(t.Context(), s, 0, 0, 2, LogOptions{})
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, s.key(3))
	_, _, err = Recover(t.Context(), s, 4, 0, 2, LogOptions{})
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "goes on at byte 6")
	_, _, err = Recover(t.Context(), s, 4, 6, 1, LogOptions{})
	requireFenced(t, err, 1)
}

func sampleChunks() []byte {
	return encodeChunks([]chunk{{5, 100, []byte("abc")}, {6, 0, []byte("some records")}, {5, 103, []byte("d")}})
}

func TestGoldenChunks(t *testing.T) {
	golden.File(t, filepath.Join("testdata", "chunks.golden"), sampleChunks())
}

// requireChunks requires that a body is refused, or has one form.
func requireChunks(tb testing.TB, b []byte) {
	tb.Helper()
	hostile.Bound{PerByte: 8, Fixed: 8 << 10}.Require(tb, len(b), func() {
		_ = decodeChunks(b, "k", func(chunk) error { return nil })
	})
	var chunks []chunk
	err := decodeChunks(b, "some/key", func(c chunk) error {
		chunks = append(chunks, c)
		return nil
	})
	if err == nil {
		require.True(tb, bytes.Equal(b, encodeChunks(chunks)))
		return
	}
	require.True(tb, errors.Is(err, base.ErrCorruption))
	require.ErrorContains(tb, err, "some/key")
}

func TestHostileChunks(t *testing.T) {
	for mutant := range hostile.Mutants(sampleChunks(), 500) {
		requireChunks(t, mutant)
	}
}

func FuzzHostileChunks(f *testing.F) {
	f.Add(sampleChunks())
	f.Fuzz(func(t *testing.T, b []byte) { requireChunks(t, b) })
}

// TestWhatIsWrittenDuringAPutIsInTheNext writes to a log while its bytes before are being put.
func TestWhatIsWrittenDuringAPutIsInTheNext(t *testing.T) {
	mem := objstore.NewMem()
	var f vfs.WriteFile
	logs, _ := recoverLogs(t, before(mem, 2, func() {
		_, err := f.Write([]byte("during"))
		require.NoError(t, err)
	}), 0, 0, 1)
	var err error
	f, err = logs.Create(5)
	require.NoError(t, err)
	_, err = f.Write([]byte("before "))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.Equal(t, uint64(3), logs.Writer().Next())
	require.NoError(t, f.Sync())
	require.Equal(t, uint64(4), logs.Writer().Next())
	_, found := recoverLogs(t, mem, 0, 0, 2)
	require.Equal(t, []Log{{5, []byte("before during")}}, found)
}

// TestAFailedPutBreaksTheOpenLogsAndNoLaterOne loses the connection for longer than a put is tried.
func TestAFailedPutBreaksTheOpenLogsAndNoLaterOne(t *testing.T) {
	mem := objstore.NewMem()
	faults := objstoretest.NewFaults(mem, 1)
	logs, _ := recoverLogs(t, faults, 0, 0, 1)
	logs.opts.Patience = 1 // the next try finds that it has ended
	five, err := logs.Create(5)
	require.NoError(t, err)
	_, err = five.Write([]byte("lost"))
	require.NoError(t, err)
	faults.Partition(true)
	require.Error(t, five.Sync())
	faults.Partition(false)
	logs.opts.Patience = time.Hour
	require.Error(t, five.Sync(), "it is broken")
	_, err = five.Write([]byte("more"))
	require.Error(t, err)
	six, err := logs.Create(6)
	require.NoError(t, err)
	_, err = six.Write([]byte("kept"))
	require.NoError(t, err)
	require.NoError(t, six.Sync())
	_, found := recoverLogs(t, mem, 0, 6, 2)
	require.Equal(t, []Log{{6, []byte("kept")}}, found)
}
