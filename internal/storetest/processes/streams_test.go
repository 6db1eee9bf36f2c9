package processes

import (
	"bytes"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
)

// A value that is written and read piece by piece takes little memory, however long it is.
func TestStreamsTakeLittleMemory(t *testing.T) {
	scale.Alone(t) // it counts the allocations of the process
	dir := t.TempDir()
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	const size = 96 << 20
	block := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	left := size
	src := storetest.ReaderFunc(func(b []byte) (int, error) {
		n := copy(b[:min(len(b), left)], block)
		left -= n
		return n, nil
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, db.SetReader(t.Context(), []byte("k"), size, src, nil))
	for range 2 {
		r, err := db.GetReader([]byte("k"))
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, r)
		require.NoError(t, err)
		require.EqualValues(t, size, n)
		require.NoError(t, r.Close())
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
	require.Equal(t, 1, storetest.RequireBlobs(t, db))
	require.NoError(t, db.Close())
}
