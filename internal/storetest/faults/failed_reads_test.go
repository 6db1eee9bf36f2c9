package faults

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// A call that fails while a log's values are read says nothing of them: the store is not opened, in any mode, or has
// all that was written. The next open has it all.
func TestAFailedReadEndsNoLog(t *testing.T) {
	t.Parallel()
	for _, mode := range []kv.RecoveryMode{kv.PointInTime, kv.TolerateTornTail, kv.SkipCorrupt} {
		for at, failed := 1, true; failed; at++ {
			f := &vfstest.FaultFS{FS: vfs.NewMem()}
			o := stores.With(harness.Harness{FS: f, MinStreamed: 2000},
				&kv.Options{MemtableSize: 64 << 10, SeparateFrom: 100,
					SeparateAtCommit: true, RecoveryMode: mode})
			db, err := kv.Open("db", o)
			require.NoError(t, err)
			m := storetest.Model{}
			for i := range 3 {
				k := fmt.Sprintf("key%03d", i)
				m[k] = strings.Repeat(k, 100)
				require.NoError(t, db.Set([]byte(k), []byte(m[k]), kv.Sync))
			}
			m["streamed"] = strings.Repeat("s", 3000)
			stores.SetReader(t, db, "streamed", m["streamed"], kv.Sync)
			stores.Crash(t, db)
			var calls atomic.Int64
			f.Set(func(c vfstest.Call) (int, error) {
				if c.Changes {
					return 0, nil
				}
				if calls.Add(1) == int64(at) {
					return 0, storetest.ErrDisk
				}
				return 0, nil
			})
			db, err = kv.Open("db", o)
			failed = calls.Load() >= int64(at)
			f.Set(nil)
			if err != nil {
				require.ErrorIs(t, err, storetest.ErrDisk)
				db, err = kv.Open("db", o)
				require.NoError(t, err)
			}
			storetest.RequireContents(t, m, db)
			require.NoError(t, db.Close())
		}
	}
}
