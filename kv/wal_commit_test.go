package kv

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
)

// A write by a lone writer allocates nothing. Under the race detector pools forget
// some of what they are given.
func TestSetDoesNotAllocate(t *testing.T) {
	db := openMem(t, &Options{MemtableSize: 8 << 20})
	key, value := make([]byte, 16), make([]byte, 100)
	n := uint64(0)
	allocs := testing.AllocsPerRun(2000, func() {
		n++
		binary.BigEndian.PutUint64(key, n)
		if err := db.Set(key, value, Async); err != nil {
			t.Error(err)
		}
	})
	require.LessOrEqual(t, allocs, float64(8*(storetest.RaceFactor-1)))
}

// Writers of all levels of durability share groups, whether a leader waits for the
// writers of the last group or not; batches of half of them are applied by their
// writers.
func TestGroupsOfMixedWriters(t *testing.T) {
	db := openMem(t, nil)
	const writers, rounds = 12, 40
	levels := []*WriteOptions{Sync, NoSync, Async}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			value := make([]byte, 16<<10*(w%2))
			for n := range rounds {
				b := db.NewBatch()
				_ = b.Set([]byte{byte(w), byte(n)}, value) // Commit returns the error
				if n%10 == 9 {
					_ = b.DeleteRange([]byte{byte(w), byte(n - 1)}, []byte{byte(w), byte(n)})
				}
				if err := b.Commit(levels[(w+n)%len(levels)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for w := range writers {
		for n := range rounds {
			ok, err := db.Has([]byte{byte(w), byte(n)})
			require.NoError(t, err)
			require.Equal(t, n%10 != 8, ok, "writer %d, round %d", w, n)
		}
	}
}
