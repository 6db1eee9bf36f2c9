package objects

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/remote"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A cacheRun is a store in an object store with a cache on a local disk whose power is cut at some of the calls that
// change it.
type cacheRun struct {
	t     *testing.T
	rng   *rand.Rand
	s     *storetest.CountedStore
	want  storetest.Model
	calls int
	cuts  []*crashfs.Disk
}

func (r *cacheRun) options(disk *crashfs.Disk, size int64, before func() error) *kv.Options {
	return stores.With(
		harness.Harness{FS: crashfs.New(disk, before)},
		&kv.Options{MemtableSize: 64 << 10, TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10, BlockSize: 1 << 10,
			CacheSize: -1, Objects: &objects.Config{Store: r.s, CacheSize: size, Grace: -1}},
	)
}

// write fills the store and its cache, opening it several times, and notes what cuts would leave of the disk.
func (r *cacheRun) write(stride int) {
	disk, clock := crashfs.NewDisk(), rand.New(rand.NewPCG(r.rng.Uint64(), 77))
	for life := range 6 {
		db, err := kv.Open("cache", r.options(disk, 2<<20, func() error { // less than what there is
			if r.calls++; clock.IntN(stride) == 0 {
				r.cuts = append(r.cuts, disk.Cut(clock))
			}
			return nil
		}))
		require.NoError(r.t, err)
		for range max(0, 800-300*life) {
			k, v := fmt.Sprintf("%04d", r.rng.IntN(1500)), string(storetest.RandomBytes(r.rng, r.rng.IntN(3000)))
			require.NoError(r.t, db.Set([]byte(k), []byte(v), kv.Async))
			r.want[k] = v
		}
		if life < 3 { // then it only reads
			require.NoError(r.t, db.Compact(context.Background(), nil, nil))
		}
		storetest.RequireContents(r.t, r.want, db)
		for k := range r.want { // scans pass the cache by
			_, err := db.Get([]byte(k))
			require.NoError(r.t, err)
		}
		require.NoError(r.t, db.Close())
	}
}

// reads opens the store with the cache on a disk, reads everything twice and returns the requests for it.
func (r *cacheRun) reads(disk *crashfs.Disk, what string) int64 {
	needed := r.s.Requests(func() {
		db, err := kv.Open("cache", r.options(disk, 16<<20, storetest.Nothing))
		require.NoError(r.t, err, what)
		objects, ok := harness.ObjectDir(db).(*remote.FS)
		require.True(r.t, ok)
		objects.FlushCache() // it is read in the background
		for range 2 {
			for k, v := range r.want {
				got, err := db.Get([]byte(k))
				require.NoError(r.t, err, what)
				require.Equal(r.t, v, string(got), what)
			}
		}
		require.NoError(r.t, db.Close(), what)
	})
	return needed[objstore.Get]
}

// damage flips a bit in each file of the cache.
func (r *cacheRun) damage(disk *crashfs.Disk) {
	names, err := crashfs.New(disk, storetest.Nothing).List("cache")
	require.NoError(r.t, err)
	for _, name := range names {
		require.NoError(r.t, disk.Edit(filepath.Join("cache", name), func(data []byte) {
			if len(data) > 0 {
				data[r.rng.IntN(len(data))] ^= 1 << r.rng.IntN(8)
			}
		}))
	}
}

// After a power cut at any call of the local disk the store opens, and the cache gives no wrong bytes. So it is if the
// files of the cache were damaged too.
func TestPowerCutsOfTheCacheOfAStoreInAnObjectStore(t *testing.T) {
	scale.OneGoroutine(t, "power is cut between the calls of one goroutine; other tests read the cache from several")
	t.Parallel()
	want, cuts, fewer := scale.Count(10, 60), 0, 0
	// After one cut in ten or twenty something is left, so that those of one seed may leave nothing.
	for seed := uint64(0); cuts < want || fewer == 0 && seed < 10; seed++ {
		r := &cacheRun{t: t, rng: rand.New(rand.NewPCG(seed, 31)), s: storetest.NewCountedStore(),
			want: storetest.Model{}}
		r.write(24)
		empty := r.reads(crashfs.NewDisk(), "an empty disk")
		for n, disk := range r.cuts {
			what := fmt.Sprintf("seed %d, cut %d of %d calls", seed, n, r.calls)
			if r.reads(disk, what) < empty {
				fewer++
			}
			r.damage(disk)
			r.reads(disk, what+", and damage")
		}
		cuts += len(r.cuts)
	}
	require.Positive(t, fewer, "what a cut leaves is of use")
	t.Logf("%d power cuts; after %d of them the cache had something", cuts, fewer)
}
