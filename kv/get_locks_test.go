package kv

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// Lookups go on while somebody has the store's lock. Those of cached and of absent keys
// wait for no lock at all, however many goroutines there are: the profiles of mutexes and of
// waits know of none.
func TestLookupsTakeNoLock(t *testing.T) {
	const goroutines = 8
	n := scale.Fewer(20_000, 4000)
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	runtime.SetBlockProfileRate(1)
	defer runtime.SetBlockProfileRate(0)
	db := multiStore(t, t.TempDir(), n, Options{CacheSize: 64 << 20})
	defer func() { require.NoError(t, db.Close()) }()
	lookUp := func(rng *rand.Rand, i int) {
		key := readBenchKey(nil, i)
		if ok, err := db.Has(key); !ok || err != nil {
			t.Error(ok, err)
		}
		keys := make([][]byte, 20)
		for i := range keys {
			keys[i] = readBenchKey(nil, rng.IntN(2*n))
		}
		if _, err := db.MultiGet(keys); err != nil {
			t.Error(err)
		}
		if ok, err := db.Has(readBenchKey(nil, n+i)); ok || err != nil {
			t.Error(ok, err)
		}
	}
	for i := range n { // into the cache
		lookUp(rand.New(rand.NewPCG(1, 1)), i)
	}
	before := waitsInLookups(t)
	db.mu.Lock()
	var readers sync.WaitGroup
	for g := range goroutines {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(g)))
			for range 2000 / storetest.RaceFactor {
				lookUp(rng, rng.IntN(n))
			}
		})
	}
	readers.Wait()
	db.mu.Unlock()
	require.Equal(t, before, waitsInLookups(t))

	// They do know of one that waits for the disk.
	fsys := &vfstest.FaultFS{FS: vfs.NewMem()}
	slow := openDir(t, "db", &Options{harness: harness.Harness{FS: fsys}, CacheSize: -1})
	set(t, slow, "k", "v")
	require.NoError(t, slow.Flush(t.Context()))
	fsys.Set(func(vfstest.Call) (int, error) {
		<-time.After(time.Millisecond)
		return 0, nil
	})
	storetest.Until(func() bool {
		_, err := slow.Has([]byte("k"))
		require.NoError(t, err)
		return waitsInLookups(t) > before
	})
	require.NoError(t, slow.Close())
}

// waitsInLookups returns how often a lookup has waited for a lock, or for anything else
// but the runtime itself: its allocator and pools.
func waitsInLookups(t *testing.T) (waits int64) {
	type profile = func([]runtime.BlockProfileRecord) (int, bool)
	for _, read := range []profile{runtime.MutexProfile, runtime.BlockProfile} {
		records := make([]runtime.BlockProfileRecord, 10_000)
		n, ok := read(records)
		require.True(t, ok)
		for _, r := range records[:n] {
			if waitInLookup(r.Stack()) {
				waits += r.Count
			}
		}
	}
	return waits
}

// waitInLookup reports whether a stack is that of a lookup that waited.
func waitInLookup(stack []uintptr) (yes bool) {
	frames := runtime.CallersFrames(stack)
	first := true
	for more := true; more; first = false {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasPrefix(f.Function, "sync.(*Pool)") || first && strings.HasPrefix(f.Function, "runtime.unlock") {
			return false
		}
		yes = yes || strings.Contains(f.Function, "kv.(*readView).")
	}
	return yes
}
