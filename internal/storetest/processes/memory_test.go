//go:build linux && !race

// The race detector takes memory of its own, and elsewhere the system does not say what a process
// has had: there TestMemoryLimitHoldsForAllParts counts.

package processes

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
)

const childLimitEnv = "SIFTKV_TEST_LIMIT" // in bytes; storetest.ChildSeedEnv is the number of keys

func init() {
	children["memory"] = func(dir string) error {
		return useWithin(dir, int64(storetest.EnvInt(childLimitEnv, 0)), storetest.EnvInt(storetest.ChildSeedEnv, 0))
	}
}

// memoryPromise is what Options.MemoryLimit promises of the process's peak.
func memoryPromise(limit int64) int64 { return limit + limit/4 + 24<<20 }

// programSize is what of the promise is left to the code of the program that embeds the
// store, in bytes. This test's links other stores and has more.
const programSize = 10 << 20

// A process that loads a store, compacts it, looks up keys and scans it stays within what
// MemoryLimit promises, as the system counts it.
func TestMemoryLimitBoundsTheProcess(t *testing.T) {
	t.Parallel() // each process is looked at alone
	keys := scale.Count(400_000, 5_000_000)
	for _, limit := range processLimits() {
		peak := peakOfChild(t, "memory", limit, keys)
		t.Logf("limit %d MiB: peak %.1f MiB, promised %.1f", limit>>20, float64(peak)/(1<<20),
			float64(memoryPromise(limit))/(1<<20))
		require.LessOrEqual(t, peak, memoryPromise(limit), "under a limit of %d MiB", limit>>20)
	}
}

// processLimits returns the limits of memory, in bytes, that a process is held to. A quick test has not enough keys
// to fill the largest.
func processLimits() []int64 {
	limits := []int64{16 << 20, 64 << 20, 256 << 20}
	if !scale.Long() {
		return limits[:2]
	}
	return limits
}

// peakOfChild runs a child in a process of its own and returns the most memory that it had
// at any time, in bytes, the pages of the test's own code replaced by programSize.
func peakOfChild(t *testing.T, mode string, limit int64, keys int) int64 {
	t.Helper()
	cmd := storetest.Child(t, mode, t.TempDir(), keys)
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", childLimitEnv, limit))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	require.NoError(t, err)
	return kib<<10 + programSize
}

// useWithin loads keys, compacts, looks 300,000 of them up and scans all, under a limit of
// memory, and prints the peak of the process in KiB.
func useWithin(dir string, limit int64, keys int) error {
	db, err := kv.Open(dir, &kv.Options{MemoryLimit: limit})
	if err != nil {
		return err
	}
	if err := errors.Join(loadKeys(db, keys), db.Compact(context.Background(), nil, nil)); err != nil {
		return err
	}
	if err := errors.Join(lookAround(db, keys), db.Close()); err != nil {
		return err
	}
	peak, err := statusField("VmHWM:")
	program, err2 := statusField("RssFile:")
	fmt.Println(peak - program)
	return errors.Join(err, err2)
}

// lookAround looks keys up, 300,000 or as many as there are twice, and scans all.
func lookAround(db *kv.DB, keys int) error {
	for i := range min(300_000, 2*keys) {
		if _, err := db.Has(limitKey(nil, i*7919%(2*keys))); err != nil {
			return err
		}
	}
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if n != keys {
		return errors.Join(fmt.Errorf("the scan found %d of %d keys", n, keys), it.Close())
	}
	return it.Close()
}

// limitKey is key i, in an order unlike that of i.
func limitKey(b []byte, i int) []byte {
	return binary.BigEndian.AppendUint64(b[:0], uint64(i)*0x9e3779b97f4a7c15)
}

func loadKeys(db *kv.DB, keys int) error {
	b := db.NewBatch()
	var k, value []byte
	for i := range keys {
		k = limitKey(k, i)
		value = append(append(value[:0], k...), k...)
		if err := b.Set(k, value); err != nil {
			return err
		}
		if b.Len() == 100 || i+1 == keys {
			if err := b.Commit(kv.NoSync); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return nil
}

// statusField returns a number of /proc/self/status, in KiB.
func statusField(name string) (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s in the process's status", name)
}

// A store that could not be opened, or was left, gives its cache and the memory of its memtables back.
func TestAbandonedStoresLeaveNoMemory(t *testing.T) {
	before, err := statusField("VmSize:")
	require.NoError(t, err)
	const numStores, cacheSize = 32, 4 << 30 // of address space
	for range numStores {
		db := stores.OpenDir(t, t.TempDir(), &kv.Options{CacheSize: cacheSize})
		require.NoError(t, db.Set([]byte("key"), []byte("value"), kv.NoSync))
		require.NoError(t, db.Flush(t.Context()))
		_, err := db.Get([]byte("key"))
		require.NoError(t, err)
		require.Positive(t, db.Metrics().CacheBytes)
		stores.Crash(t, db)
		runtime.GC() // it gives back what tables are open with
	}
	storetest.Until(func() bool {
		runtime.GC()
		after, err := statusField("VmSize:")
		require.NoError(t, err)
		return after-before < numStores/2*cacheSize>>10
	})
}
