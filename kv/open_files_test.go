package kv

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// A store of many more files than it may have open works with that few, in every way of
// reading, and after files were closed and opened again.
func TestOpenFilesAreBounded(t *testing.T) {
	t.Parallel()
	for _, mapped := range []bool{false, true} {
		o := &Options{harness: harness.Harness{FS: vfs.OS}, MaxOpenFiles: 4, CacheSize: -1,
			Compression: sstable.NoCompression, MemoryMap: mapped,
			MemtableSize: 64 << 10, TargetFileSize: 16 << 10, BaseLevelSize: 16 << 10}
		db := openDir(t, t.TempDir(), o)
		want := storetest.Model{}
		for i := range 3000 {
			k := fmt.Sprintf("%05d", i*7919%3000)
			want[k] = fmt.Sprintf("%0200d", i)
			require.NoError(t, db.Set([]byte(k), []byte(want[k]), Async))
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.Greater(t, db.Metrics().Levels[lastLevel].Files, 15)
		for range scale.Fewer(2, 1) {
			requireContents(t, want, db)
			for k, v := range want {
				got, err := db.Get([]byte(k))
				require.NoError(t, err)
				require.Equal(t, v, string(got))
				require.LessOrEqual(t, db.Metrics().OpenFiles, 4)
			}
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, db.Close())
		require.Zero(t, db.openFiles.Used())
	}
}
