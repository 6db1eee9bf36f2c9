//go:build linux && !race

// The race detector takes memory of its own, and elsewhere the system does not say what a process
// has had: there TestBudgetHoldsForAllParts counts.

package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
)

func init() {
	children["budget"] = func(dir string) error {
		return useStoresWithin(dir, int64(storetest.EnvInt(childLimitEnv, 0)), storetest.EnvInt(storetest.ChildSeedEnv,
			0))
	}
}

const (
	budgetStores  = 20
	storeOverhead = 512 << 10 // what MemoryBudget promises for each store, in bytes
)

// A process with twenty stores, that loads them side by side, compacts them, looks up keys in all and scans them
// stays within what MemoryBudget promises, as the system counts it.
func TestBudgetBoundsTheProcess(t *testing.T) {
	t.Parallel() // each process is looked at alone
	keys := scale.Count(200_000, 2_000_000)
	for _, limit := range processLimits() {
		promise := memoryPromise(limit) + budgetStores*storeOverhead
		peak := peakOfChild(t, "budget", limit, keys)
		t.Logf("limit %d MiB: peak %.1f MiB, promised %.1f", limit>>20, float64(peak)/(1<<20),
			float64(promise)/(1<<20))
		require.LessOrEqual(t, peak, promise, "with a budget of %d MiB", limit>>20)
	}
}

// useStoresWithin loads keys into stores that share a budget, compacts, looks keys up and scans, and
// prints the peak of the process in KiB.
func useStoresWithin(dir string, limit int64, keys int) error {
	b := kv.NewMemoryBudget(limit)
	each := keys / budgetStores
	var stores []*kv.DB
	for i := range budgetStores {
		db, err := kv.Open(filepath.Join(dir, strconv.Itoa(i)), &kv.Options{MemoryBudget: b})
		if err != nil {
			return err
		}
		stores = append(stores, db)
	}
	side := func(f func(db *kv.DB) error) error {
		failed := make(chan error)
		for _, db := range stores {
			go func() { failed <- f(db) }()
		}
		var err error
		for range stores {
			err = errors.Join(err, <-failed)
		}
		return err
	}
	err := side(func(db *kv.DB) error {
		return errors.Join(loadKeys(db, each),
			db.Compact(context.Background(), nil, nil))
	})
	if err == nil {
		err = side(func(db *kv.DB) error { return lookAround(db, each) })
	}
	if err == nil {
		err = loadKeys(stores[0], keys/4) // one goes on alone
	}
	u := b.Usage()
	for _, db := range stores {
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		return err
	}
	peak, err := statusField("VmHWM:")
	program, err2 := statusField("RssFile:")
	fmt.Fprintf(os.Stderr, "at the end %+v\n", u)
	fmt.Println(peak - program)
	return errors.Join(err, err2)
}
