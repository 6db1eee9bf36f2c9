package kv

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/hostile"
)

// denseFile has a block of 4 MiB in 500 bytes, as writers stored them before they knew of
// readers who mind.
var denseFile = filepath.Join("..", "sstable", "testdata", "v3-zstd-dense.sst")

// What comes from elsewhere is refused if a lookup would need memory out of proportion to
// it. What the store has is read, whichever version of it wrote that.
func TestIngestRefusesBlockBombsAndTheStoreReadsItsOwn(t *testing.T) {
	db := openDir(t, t.TempDir(), nil)
	info, err := os.Stat(denseFile)
	require.NoError(t, err)
	hostile.Bound{PerByte: 256, Fixed: 2 << 20}.Require(t, int(info.Size()), func() {
		err = db.Ingest([]string{denseFile})
	})
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, "AnyExpansion")

	require.NoError(t, db.IngestContext(context.Background(), []string{denseFile}, &IngestOptions{SkipVerify: true}))
	value, err := db.Get([]byte("zeros"))
	require.NoError(t, err)
	require.Equal(t, make([]byte, 4<<20), value)
	require.NoError(t, db.Compact(nil, nil))
	require.NoError(t, db.Close())
}
