package siftethdb_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	host "github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/ethdb/dbtest"
	"github.com/ethereum/go-ethereum/ethdb/memorydb"
	"github.com/ethereum/go-ethereum/ethdb/pebble"
	"github.com/stretchr/testify/require"

	siftethdb "github.com/siftkv/siftkv/adapters/ethdb"
	"github.com/siftkv/siftkv/internal/turns"
	"github.com/siftkv/siftkv/kv"
)

func open(tb testing.TB) *siftethdb.Database {
	tb.Helper()
	db, err := siftethdb.Open(tb.TempDir(), nil)
	require.NoError(tb, err)
	return db
}

// The host's own suite.
func TestDatabaseSuite(t *testing.T) {
	dbtest.TestDatabaseSuite(t, func() host.KeyValueStore { return open(t) })
}

// The host's own benchmarks, on its usual store too.
func BenchmarkSuite(b *testing.B) {
	b.Run("store=siftkv", func(b *testing.B) {
		dbtest.BenchDatabaseSuite(b, func() host.KeyValueStore { return open(b) })
	})
	b.Run("store=pebble", func(b *testing.B) {
		dbtest.BenchDatabaseSuite(b, func() host.KeyValueStore { return openPebble(b) })
	})
}

// BenchmarkBatch makes a batch of a million entries, writes it and closes the store, on both stores in turns. It prints
// the processor time of an entry, in nanoseconds. `-benchtime 5x` makes five rounds.
func BenchmarkBatch(b *testing.B) {
	const n = 1_000_000
	var t turns.Table
	random, values, rng := make([][]byte, n), make([]byte, 32*n), rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(values)
	for i := range random {
		random[i] = make([]byte, 32)
		_, _ = rng.Read(random[i])
	}
	sorted := slices.SortedFunc(slices.Values(random), bytes.Compare)
	for range b.N {
		for order, keys := range map[string][][]byte{"in order": sorted, "at random": random} {
			for name, open := range map[string]func(testing.TB) host.KeyValueStore{
				"siftkv": func(tb testing.TB) host.KeyValueStore { return open(tb) }, "pebble": openPebble,
			} {
				db := open(b)
				t.Measure(name, order, n, func() {
					batch := db.NewBatch()
					for i, key := range keys {
						require.NoError(b, batch.Put(key, values[32*i:32*i+32]))
					}
					require.NoError(b, batch.Write())
					require.NoError(b, db.Close())
				})
			}
		}
	}
	t.Print(b, "siftkv", "pebble")
}

func openPebble(tb testing.TB) host.KeyValueStore {
	tb.Helper()
	db, err := pebble.New(tb.TempDir(), 64, 1000, "", false)
	require.NoError(tb, err)
	return db
}

// Any operations give the answers of the host's own stores.
func TestAgreesWithTheHostsStores(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 15))
		ours, want := open(t), []host.KeyValueStore{memorydb.New(), openPebble(t)}
		all := append([]host.KeyValueStore{ours}, want...)
		key := func() []byte { return bytes.Repeat([]byte{"ab\xff"[rng.IntN(3)]}, 1+rng.IntN(4)) }
		for n := range 200 {
			switch rng.IntN(7) {
			case 0, 1:
				k := key()
				for _, s := range all {
					require.NoError(t, s.Put(k, fmt.Append(nil, n)))
				}
			case 2:
				k := key()
				for _, s := range all {
					require.NoError(t, s.Delete(k))
				}
			case 3:
				lo, hi := key(), key()
				for _, s := range all {
					require.NoError(t, s.DeleteRange(lo, hi))
				}
			case 4:
				requireSameBatch(t, rng, key, all)
			case 5:
				k := key()
				for _, s := range want {
					requireSameGet(t, ours, s, k)
				}
			case 6:
				prefix, start := key(), key()
				for _, s := range want {
					want, got := entries(t, s, prefix, start), entries(t, ours, prefix, start)
					require.Equal(t, want, got, "%q %q", prefix, start)
				}
			}
		}
		for _, s := range want {
			require.Equal(t, entries(t, s, nil, nil), entries(t, ours, nil, nil))
		}
		for _, s := range all {
			require.NoError(t, s.Close())
		}
	}
}

// requireSameBatch writes a batch to each store: half of the time by way of another batch.
func requireSameBatch(t *testing.T, rng *rand.Rand, key func() []byte, all []host.KeyValueStore) {
	var ops []func(b host.Batch) error
	for n := range rng.IntN(6) {
		k, hi := key(), key()
		ops = append(ops, []func(b host.Batch) error{
			func(b host.Batch) error { return b.Put(k, fmt.Append(nil, "batch", n)) },
			func(b host.Batch) error { return b.Delete(k) },
			func(b host.Batch) error { return b.DeleteRange(k, hi) },
		}[rng.IntN(3)])
	}
	replayed := rng.IntN(2) == 0
	for _, s := range all {
		b := s.NewBatchWithSize(1 << 10)
		require.Zero(t, b.ValueSize())
		for _, op := range ops {
			require.NoError(t, op(b))
		}
		to := b
		if replayed {
			to = s.NewBatch()
			require.NoError(t, b.Replay(to))
		}
		require.NoError(t, to.Write())
		to.Reset()
		require.Zero(t, to.ValueSize())
		b.Close()
	}
}

func requireSameGet(t *testing.T, ours, theirs host.KeyValueStore, k []byte) {
	want, wantErr := theirs.Get(k)
	got, err := ours.Get(k)
	require.Equal(t, wantErr == nil, err == nil)
	require.Equal(t, want, got)
	has, err := ours.Has(k)
	require.NoError(t, err)
	require.Equal(t, wantErr == nil, has)
	if !has {
		_, err = ours.Get(k)
		require.ErrorIs(t, err, kv.ErrNotFound)
	}
}

func entries(t *testing.T, s host.KeyValueStore, prefix, start []byte) (all []string) {
	it := s.NewIterator(prefix, start)
	for it.Next() {
		all = append(all, fmt.Sprintf("%q=%q", it.Key(), it.Value()))
	}
	require.NoError(t, it.Error())
	it.Release()
	it.Release()
	return all
}

// noRanges is a writer that cannot delete ranges.
type noRanges struct{ host.KeyValueWriter }

func TestEdgesOfBatchesAndIterators(t *testing.T) {
	db := open(t)
	b := db.NewBatch()
	require.NoError(t, b.Put([]byte("a"), nil))
	size := b.ValueSize()
	require.Positive(t, size)
	require.NoError(t, b.DeleteRange([]byte("b"), nil))
	require.Greater(t, b.ValueSize(), size)
	require.ErrorContains(t, b.Replay(noRanges{db}), "DeleteRange")
	require.ErrorIs(t, b.Put(make([]byte, kv.MaxKeySize+1), nil), kv.ErrTooLarge)
	require.ErrorIs(t, b.Write(), kv.ErrTooLarge)
	require.Equal(t, []string{`"a"=""`}, entries(t, db, nil, nil), "what came before the error was replayed")
	require.NoError(t, db.SyncKeyValue())
	stat, err := db.Stat()
	require.NoError(t, err)
	require.Contains(t, stat, "Levels")

	it := db.NewIterator(nil, nil)
	require.Nil(t, it.Key())
	require.True(t, it.Next())
	require.False(t, it.Next())
	require.Nil(t, it.Value())
	it.Release()
	require.False(t, it.Next())
	require.Nil(t, it.Key())
	require.NoError(t, it.Error())
	require.NoError(t, db.Close())
	it = db.NewIterator(nil, nil)
	require.False(t, it.Next())
	require.ErrorIs(t, it.Error(), kv.ErrClosed)
	it.Release()
}
