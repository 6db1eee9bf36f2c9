package powercuts

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// The power fails at every call between a failed commit and the end of resuming.
// The commit may come back if the store had not resumed, whole; nothing else is
// lost or added.
func TestPowerCutsWhileAStoreResumes(t *testing.T) {
	t.Parallel()
	cuts := 0
	for seed := range uint64(scale.Count(20, 40)) {
		rng := rand.New(rand.NewPCG(seed, 21))
		mem := crashfs.NewDisk()
		type moment struct {
			disk    *crashfs.Disk
			resumed bool
		}
		var clones []moment
		var watching, resumed atomic.Bool
		crash := crashfs.New(mem, func() error {
			if watching.Load() {
				h := resumed.Load()
				clones = append(clones, moment{mem.Cut(rng), h})
			}
			return nil
		})
		f := &vfstest.FaultFS{FS: crash}
		o := stores.With(harness.Harness{FS: f, Backoff: storetest.Quick},
			&kv.Options{MemtableSize: 64 << 10, CacheSize: -1})
		db, err := kv.Open("db", o)
		require.NoError(t, err)
		want := storetest.Model{}
		for i := range 3 + rng.IntN(40) {
			k := fmt.Sprintf("%02d", i)
			require.NoError(t, db.Set([]byte(k), make([]byte, rng.IntN(5000)), kv.NoSync))
			v, err := db.Get([]byte(k))
			require.NoError(t, err)
			want[k] = string(v)
		}
		require.NoError(t, db.Set([]byte("last"), nil, kv.Sync))
		want["last"] = ""
		harness.Settle(db)
		storetest.FailOnce(f, []string{"write", "sync"}[seed%2])
		watching.Store(true)
		require.ErrorIs(t, db.Set([]byte("zzz"), []byte("failed"), kv.Sync), storetest.ErrDisk)
		stores.UntilResumed(db)
		resumed.Store(true)
		require.NoError(t, db.Set([]byte("last"), nil, kv.Sync))
		watching.Store(false)
		require.NoError(t, db.Close())
		for _, c := range clones {
			db, err := kv.Open("db", stores.With(harness.Harness{FS: crashfs.New(c.disk, storetest.Nothing)},
				&kv.Options{MemtableSize: 64 << 10, CacheSize: -1}))
			require.NoError(t, err, "seed %d", seed)
			all := want
			if ok, err := db.Has([]byte("zzz")); ok {
				require.NoError(t, err)
				require.False(t, c.resumed, "seed %d: a failed commit has come back after resuming", seed)
				all = storetest.Model{"zzz": "failed"}
				maps.Copy(all, want)
			}
			storetest.RequireContents(t, all, db)
			require.NoError(t, db.Close())
			cuts++
		}
	}
	require.NotZero(t, cuts)
	t.Logf("%d power cuts", cuts)
}

// A store that was closed and then lost power opens in every recovery mode: the mark
// that says that it was closed is as durable as what comes before it.
func TestAClosedStoreThatLostPowerOpensInEveryMode(t *testing.T) {
	t.Parallel()
	for mode := range stores.RecoveryModes {
		disk := crashfs.NewDisk()
		db, err := kv.Open("db", stores.With(harness.Harness{FS: crashfs.New(disk, storetest.Nothing)},
			&kv.Options{CacheSize: -1}))
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("a"), []byte("1"), kv.Sync))
		require.NoError(t, db.Set([]byte("b"), []byte("2"), kv.Async))
		require.NoError(t, db.Close())
		after := disk.CutTo(0, nil)
		db, err = kv.Open("db", stores.With(harness.Harness{FS: crashfs.New(after, storetest.Nothing)},
			&kv.Options{CacheSize: -1,
				RecoveryMode: mode}))
		require.NoError(t, err, mode)
		storetest.RequireContents(t, storetest.Model{"a": "1", "b": "2"}, db)
		require.NoError(t, db.Close())
	}
}
