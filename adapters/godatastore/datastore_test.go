package godatastore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
	dstest "github.com/ipfs/go-datastore/test"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/adapters/godatastore"
	"github.com/siftkv/siftkv/kv"
)

func open(tb testing.TB, dir string, o *kv.Options) *godatastore.Datastore {
	tb.Helper()
	d, err := godatastore.Open(dir, o)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, d.Close()) })
	return d
}

// The host's own suite.
func TestSuite(t *testing.T) { dstest.SubtestAll(t, open(t, t.TempDir(), nil)) }

// Every feature that the package claims is one that the host finds.
func TestFeatures(t *testing.T) {
	var names []string
	for _, f := range ds.FeaturesForDatastore(open(t, t.TempDir(), nil)) {
		names = append(names, f.Name)
	}
	require.ElementsMatch(t, []string{ds.FeatureNameBatching, ds.FeatureNameChecked, ds.FeatureNameGC,
		ds.FeatureNamePersistent, ds.FeatureNameTTL, ds.FeatureNameTransaction}, names)
}

// Any queries give what the host's own code makes of a map, in the store and in a transaction.
func TestQueriesAgreeWithTheHosts(t *testing.T) {
	ctx := t.Context()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 15))
		ours, theirs := open(t, t.TempDir(), nil), ds.NewMapDatastore()
		write := func(w ds.Write) {
			for n := range 60 {
				parent := []string{"a", "ab", "a/b", "b/c", "b", "b/c/d"}[rng.IntN(6)]
				key := ds.NewKey(parent).ChildString(strconv.Itoa(rng.IntN(20)))
				value := fmt.Appendf(nil, "%d", rng.IntN(10))
				if n%5 == 0 {
					require.NoError(t, w.Delete(ctx, key))
					require.NoError(t, theirs.Delete(ctx, key))
					continue
				}
				require.NoError(t, w.Put(ctx, key, value))
				require.NoError(t, theirs.Put(ctx, key, value))
			}
		}
		write(ours)
		for range 40 {
			requireSameQuery(t, randomQuery(rng), theirs, ours)
		}
		tx, err := ours.NewTransaction(ctx, false)
		require.NoError(t, err)
		write(tx)
		for range 40 {
			requireSameQuery(t, randomQuery(rng), theirs, tx)
		}
		require.NoError(t, tx.Commit(ctx))
		tx.Discard(ctx)
		requireSameQuery(t, query.Query{}, theirs, ours)
	}
}

func randomQuery(rng *rand.Rand) query.Query {
	byValue := query.FilterValueCompare{Op: query.GreaterThan, Value: []byte("3")}
	return query.Query{
		Prefix: []string{"", "/", "a", "/a/", "/a/../b", "b/c", "/none"}[rng.IntN(7)],
		Filters: [][]query.Filter{nil, {byValue}, {query.FilterKeyCompare{Op: query.LessThan, Key: "/b"}},
			{query.FilterKeyPrefix{Prefix: "/b"}, byValue}}[rng.IntN(4)],
		// The keys at the end: an order that leaves entries equal may be any among them.
		Orders: [][]query.Order{{query.OrderByKey{}}, {&query.OrderByKeyDescending{}},
			{query.OrderByValue{}, query.OrderByKey{}},
			{query.OrderByValueDescending{}, query.OrderByKeyDescending{}}}[rng.IntN(4)],
		Limit: rng.IntN(2) * rng.IntN(30), Offset: rng.IntN(2) * rng.IntN(30),
		KeysOnly: rng.IntN(2) == 0, ReturnsSizes: rng.IntN(2) == 0,
	}
}

// requireSameQuery compares with what the host makes of all entries with their values, from which it
// takes the values at the end: its map leaves them out before a filter could see them.
func requireSameQuery(t *testing.T, q query.Query, theirs, ours ds.Read) {
	t.Helper()
	whole := q
	whole.KeysOnly = false
	r, err := theirs.Query(t.Context(), whole)
	require.NoError(t, err)
	want, err := r.Rest()
	require.NoError(t, err)
	for i := range want {
		if q.KeysOnly {
			want[i].Value = nil
			if !q.ReturnsSizes {
				want[i].Size = -1
			}
		}
	}
	r, err = ours.Query(t.Context(), q)
	require.NoError(t, err)
	got, err := r.Rest()
	require.NoError(t, err)
	if len(q.Orders) == 0 {
		slices.SortFunc(want, func(a, b query.Entry) int { return query.OrderByKey{}.Compare(a, b) })
	}
	require.Equal(t, want, got, "%s", q)
	require.NoError(t, r.Close())
}

// Values that expire do so by the clock of the store, in queries and transactions too.
func TestExpiry(t *testing.T) {
	var seconds atomic.Int64
	seconds.Store(1_800_000_000)
	d := open(t, t.TempDir(), &kv.Options{Clock: func() time.Time { return time.Unix(seconds.Load(), 0) }})
	ctx, key, other := t.Context(), ds.NewKey("/a"), ds.NewKey("/b")
	require.NoError(t, d.PutWithTTL(ctx, key, []byte("v"), time.Minute))
	require.NoError(t, d.Put(ctx, other, []byte("w")))
	at, err := d.GetExpiration(ctx, key)
	require.NoError(t, err)
	require.True(t, at.Equal(time.Unix(1_800_000_060, 0)), at)
	at, err = d.GetExpiration(ctx, other)
	require.NoError(t, err)
	require.True(t, at.IsZero())
	_, err = d.GetExpiration(ctx, ds.NewKey("/c"))
	require.Equal(t, ds.ErrNotFound, err)
	require.Equal(t, ds.ErrNotFound, d.SetTTL(ctx, ds.NewKey("/c"), time.Minute))

	require.NoError(t, d.SetTTL(ctx, other, 2*time.Minute))
	r, err := d.Query(ctx, query.Query{KeysOnly: true, ReturnExpirations: true})
	require.NoError(t, err)
	entries, err := r.Rest()
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.True(t, entries[1].Expiration.Equal(time.Unix(1_800_000_120, 0)))

	seconds.Add(60)
	has, err := d.Has(ctx, key)
	require.NoError(t, err)
	require.False(t, has)
	_, err = d.GetSize(ctx, key)
	require.Equal(t, ds.ErrNotFound, err)
	tx, err := d.NewTransaction(ctx, false)
	require.NoError(t, err)
	ttl := tx.(ds.TTL)
	require.NoError(t, ttl.SetTTL(ctx, other, time.Hour))
	require.NoError(t, ttl.PutWithTTL(ctx, key, []byte("again"), time.Hour))
	at, err = ttl.GetExpiration(ctx, key)
	require.NoError(t, err)
	require.True(t, at.Equal(time.Unix(1_800_003_660, 0)))
	require.NoError(t, tx.Commit(ctx))
	seconds.Add(3599)
	value, err := d.Get(ctx, other)
	require.NoError(t, err)
	require.Equal(t, "w", string(value))
	seconds.Add(1)
	_, err = d.Get(ctx, other)
	require.Equal(t, ds.ErrNotFound, err)
	require.NoError(t, d.Put(ctx, key, []byte("for good")))
	at, err = d.GetExpiration(ctx, key)
	require.NoError(t, err)
	require.True(t, at.IsZero())
}

func TestTransactions(t *testing.T) {
	ctx, key := t.Context(), ds.NewKey("/a")
	d := open(t, t.TempDir(), nil)
	first, err := d.NewTransaction(ctx, false)
	require.NoError(t, err)
	_, err = first.Get(ctx, key)
	require.Equal(t, ds.ErrNotFound, err)
	require.NoError(t, first.Put(ctx, key, []byte("first")))
	size, err := first.GetSize(ctx, key)
	require.NoError(t, err)
	require.Equal(t, 5, size)
	require.NoError(t, d.Put(ctx, key, []byte("between")))
	require.ErrorIs(t, first.Commit(ctx), kv.ErrConflict)
	first.Discard(ctx)
	value, err := d.Get(ctx, key)
	require.NoError(t, err)
	require.Equal(t, "between", string(value))

	reading, err := d.NewTransaction(ctx, true)
	require.NoError(t, err)
	require.ErrorIs(t, reading.Put(ctx, key, nil), kv.ErrTxReadOnly)
	require.ErrorIs(t, reading.Delete(ctx, key), kv.ErrTxReadOnly)
	require.NoError(t, d.Delete(ctx, key))
	has, err := reading.Has(ctx, key)
	require.NoError(t, err)
	require.True(t, has, "it sees the store as it was")
	reading.Discard(ctx)
	_, err = reading.Has(ctx, key)
	require.ErrorIs(t, err, kv.ErrTxDone)
}

func TestBatchesAreUsedAgain(t *testing.T) {
	ctx, d := t.Context(), open(t, t.TempDir(), nil)
	b, err := d.Batch(ctx)
	require.NoError(t, err)
	require.NoError(t, b.Put(ctx, ds.NewKey("/a"), nil))
	require.NoError(t, b.Commit(ctx))
	require.NoError(t, d.Delete(ctx, ds.NewKey("/a")))
	require.NoError(t, b.Put(ctx, ds.NewKey("/b"), nil))
	require.NoError(t, b.Commit(ctx))
	for key, want := range map[string]bool{"/a": false, "/b": true} {
		has, err := d.Has(ctx, ds.NewKey(key))
		require.NoError(t, err)
		require.Equal(t, want, has, key)
	}
}

func TestSpaceAndDamage(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	d, err := godatastore.Open(dir, nil)
	require.NoError(t, err)
	value := make([]byte, 1000)
	rand.NewChaCha8([32]byte{15}).Read(value)
	for n := range 1000 {
		require.NoError(t, d.Put(ctx, ds.NewKey(strconv.Itoa(n)), value))
	}
	require.NoError(t, d.CollectGarbage(ctx))
	require.NoError(t, d.Check(ctx))
	full, err := ds.DiskUsage(ctx, d)
	require.NoError(t, err)
	require.Positive(t, full)
	for n := range 999 {
		require.NoError(t, d.Delete(ctx, ds.NewKey(strconv.Itoa(n))))
	}
	require.NoError(t, d.CollectGarbage(ctx))
	left, err := d.DiskUsage(ctx)
	require.NoError(t, err)
	require.Less(t, left, full/2)
	require.NoError(t, d.Close())

	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	data[len(data)/3] ^= 1
	require.NoError(t, os.WriteFile(files[0], data, 0o600))
	require.ErrorIs(t, open(t, dir, nil).Check(ctx), kv.ErrCorruption)
}

func TestEndedContexts(t *testing.T) {
	d, key := open(t, t.TempDir(), nil), ds.NewKey("/a")
	require.NoError(t, d.Put(t.Context(), key, []byte("v")))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := d.Query(ctx, query.Query{})
	require.NoError(t, err)
	cancel()
	_, err = r.Rest()
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.ErrorIs(t, d.Put(ctx, key, nil), context.Canceled)
	require.ErrorIs(t, d.Delete(ctx, key), context.Canceled)
	_, err = d.Get(ctx, key)
	require.ErrorIs(t, err, context.Canceled)
	_, err = d.GetSize(ctx, key)
	require.ErrorIs(t, err, context.Canceled)
	_, err = d.Has(ctx, key)
	require.ErrorIs(t, err, context.Canceled)
	_, err = d.NewTransaction(ctx, true)
	require.ErrorIs(t, err, context.Canceled)
	_, err = d.DiskUsage(ctx)
	require.ErrorIs(t, err, context.Canceled)
	size, err := d.GetSize(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, 1, size)
}
