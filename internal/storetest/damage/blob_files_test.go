package damage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// A blob file that is missing, or has no header, is damage also where nothing proves that the log was synced: both
// were durable before the log had a handle.
func TestAMissingBlobFileEndsNoLog(t *testing.T) {
	t.Parallel()
	for _, streamed := range []bool{false, true} {
		for what, damage := range map[string]func(name string){
			"missing":   func(name string) { require.NoError(t, vfs.OS.Remove(name)) },
			"no header": func(name string) { storetest.Rewrite(t, name, storetest.Flip(3)) },
			"empty":     func(name string) { storetest.Rewrite(t, name, func([]byte) []byte { return nil }) },
		} {
			dir := t.TempDir()
			o := stores.With(harness.Harness{MinStreamed: 10},
				&kv.Options{SeparateFrom: 100, SeparateAtCommit: !streamed})
			db, err := kv.Open(dir, o)
			require.NoError(t, err)
			v := strings.Repeat("v", 200)
			if streamed {
				stores.SetReader(t, db, "k", v, kv.Sync)
			} else {
				require.NoError(t, db.Set([]byte("k"), []byte(v), kv.Sync))
			}
			stores.Crash(t, db)
			names := storetest.BlobsOnDisk(t, vfs.OS, dir)
			require.Len(t, names, 1)
			damage(dir + "/" + names[0])
			for _, mode := range []kv.RecoveryMode{kv.PointInTime, kv.TolerateTornTail} {
				o.RecoveryMode = mode
				_, err = kv.Open(dir, o)
				require.ErrorIs(t, err, kv.ErrCorruption, what)
				require.ErrorContains(t, err, names[0])
			}
			_, err = kv.OpenReadOnly(dir, nil)
			require.ErrorIs(t, err, kv.ErrCorruption, what)
			require.ErrorContains(t, err, names[0])
			o.RecoveryMode = kv.SkipCorrupt
			db, err = kv.Open(dir, o)
			require.NoError(t, err)
			require.NoError(t, db.Close())
		}
	}
}
