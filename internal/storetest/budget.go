package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/stretchr/testify/require"
)

// RequireNothingCharged requires that a *kv.MemoryBudget whose stores are closed has given all back.
func RequireNothingCharged(t testing.TB, b interface{ Usage() metrics.Budget }) {
	t.Helper()
	u := b.Usage()
	require.Zero(t, u.Bytes(), "%+v", u)
	require.Zero(t, u.Stores)
	require.Zero(t, u.Compactions)
	require.Zero(t, u.Waiting)
}

// ShareKey returns key i of a store that has a share of a budget.
func ShareKey(store, i int) []byte { return fmt.Appendf(nil, "store %d: %06d", store, i) }

// LoadShare writes n keys of 300 bytes to a store.
func LoadShare(set func(key, value []byte) error, store, n int) error {
	rng := rand.New(rand.NewPCG(uint64(store), 1))
	for i := range n {
		if err := set(ShareKey(store, i), RandomBytes(rng, 300)); err != nil {
			return err
		}
	}
	return nil
}

// CheckShare reads keys of a store back, at random.
func CheckShare(has func(key []byte) (bool, error), store, keys, n int) error {
	rng := rand.New(rand.NewPCG(uint64(store), 2))
	for range n {
		i := rng.IntN(keys)
		if ok, err := has(ShareKey(store, i)); err != nil || !ok {
			return fmt.Errorf("key %d of store %d: %t, %w", i, store, ok, err)
		}
		if ok, err := has(append(ShareKey(store, i), 'x')); err != nil || ok {
			return fmt.Errorf("no key %d of store %d: %t, %w", i, store, ok, err)
		}
	}
	return nil
}
