package advice

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storeview"
	"github.com/siftkv/siftkv/kv"
)

var styles = []kv.CompactionStyle{kv.Leveled, kv.Tiered, kv.LazyLeveled}

// adviceStore returns a store of several runs, in a directory, with keys that are even numbers.
func adviceStore(t *testing.T, o *kv.Options) (*kv.DB, string) {
	t.Helper()
	dir := t.TempDir()
	o.MemtableSize, o.TargetFileSize, o.BaseLevelSize = 256<<10, 64<<10, 128<<10
	db, err := kv.Open(dir, o)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for i, n := range rng.Perm(20_000) {
		fine(t, db.Set(adviceKey(2*n), make([]byte, 100), kv.NoSync))
		if i%1000 == 999 {
			fine(t, db.Delete(adviceKey(2*n), kv.NoSync))
		}
	}
	settle(t, db)
	return db, dir
}

func adviceKey(n int) []byte { return fmt.Appendf(nil, "user/%06d/name", n) }

// ask looks keys up and scans, and returns how many of either.
func ask(t *testing.T, db *kv.DB) (lookups, scans int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range 4000 {
		_, err := db.Has(adviceKey(rng.IntN(40_000)))
		fine(t, err)
		if i%40 == 0 {
			lo := rng.IntN(40_000)
			var err error
			o := &kv.IterOptions{LowerBound: adviceKey(lo), UpperBound: adviceKey(lo + rng.IntN(20))}
			for range db.All(o, &err) {
			}
			fine(t, err)
			scans++
		}
	}
	return 4000, scans
}

// fine is require.NoError for loops: it takes no time if there is no error.
func fine(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		require.NoError(tb, err)
	}
}

// settle flushes the store and waits until no compaction runs or is due.
func settle(t *testing.T, db *kv.DB) {
	t.Helper()
	require.NoError(t, db.Flush(t.Context()))
	require.Eventually(t, func() bool {
		m := db.Metrics()
		return m.RunningCompactions == 0 && m.CompactionDebt == 0
	}, time.Minute, time.Millisecond)
}

// locatorOf returns a locator for the present state of the store. The caller releases its store.
func locatorOf(t *testing.T, db *kv.DB) *locator {
	t.Helper()
	store, err := storeview.Of(db)
	require.NoError(t, err)
	l, err := newLocator(store)
	require.NoError(t, err)
	return l
}
