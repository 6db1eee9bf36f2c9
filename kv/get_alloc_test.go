//go:build !race

package kv

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// Under the race detector, pools lose what they are given on purpose.

func TestReadsDoNotAllocate(t *testing.T) {
	db, err := Open("", &Options{InMemory: true, CacheSize: 256 << 10, MemtableSize: 1 << 20})
	require.NoError(t, err)
	const n = 20_000
	var key, value []byte
	for i := range n {
		key = readBenchKey(key, i)
		require.NoError(t, db.Set(key, append(key, key...), NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	i := 0
	read := func() {
		i = (i + 7919) % n
		key = readBenchKey(key, i)
		var err error
		value, err = db.AppendGet(value[:0], key)
		ok, hasErr := db.Has(key)
		if err != nil || hasErr != nil || !ok || len(value) != 32 {
			t.Fatal(err, hasErr, ok, value)
		}
	}
	measure := func() {
		i = (i + 7919) % n
		key = readBenchKey(key, i)
		size, err := db.GetSize(key)
		expiry, expiryErr := db.Expiry(key)
		if err != nil || expiryErr != nil || size != 32 || !expiry.IsZero() {
			t.Fatal(err, expiryErr, size, expiry)
		}
	}
	scan := func() {
		i = (i + 7919) % n
		key = readBenchKey(key, i)
		it, err := db.NewIter(nil)
		if err != nil || !it.SeekGE(key) || !it.Next() && it.Error() != nil || it.Close() != nil {
			t.Fatal(err, it.Error())
		}
	}
	for range 1000 {
		read()
		measure()
		scan()
	}
	m := db.Metrics()
	require.Less(t, m.CacheBytes, int64(300<<10))
	// Pools lose buffers to the collector now and then.
	require.Less(t, testing.AllocsPerRun(2000, read), 0.2)
	require.Less(t, testing.AllocsPerRun(2000, measure), 0.2)
	require.Less(t, testing.AllocsPerRun(2000, scan), 1.3, "an iterator of one")
	require.NoError(t, db.Close())
}

// Of keys in memory, in blocks that are cached and of a transaction, whatever their values, GetSize
// and Expiry allocate nothing at all.
func TestGetSizeDoesNotAllocate(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time, CacheSize: 8 << 20, Compression: sstable.NoCompression})
	set(t, db, "short", "value")
	set(t, db, "long", strings.Repeat("x", 100_000))
	require.NoError(t, db.SetTTL([]byte("ends"), []byte(strings.Repeat("x", 5000)), time.Hour, NoSync))
	keys := [][]byte{[]byte("short"), []byte("long"), []byte("ends"), []byte("absent")}
	for _, place := range []func() error{func() error { return nil }, func() error { return db.Flush(t.Context()) }} {
		require.NoError(t, place())
		s := db.NewSnapshot()
		tx := beginTx(t, db, true)
		require.NoError(t, tx.Set([]byte("other"), nil))
		for _, r := range []loopReader{db, s, tx} {
			for _, key := range keys {
				ask := func() {
					size, err := r.GetSize(key)
					expiry, expiryErr := r.Expiry(key)
					if !errors.Is(err, expiryErr) || size == 0 && !expiry.IsZero() {
						t.Fatal(size, expiry, err)
					}
				}
				ask() // a block is read, and the key is among those of the transaction
				require.Zero(t, testing.AllocsPerRun(200, ask), "%T, %s", r, key)
			}
		}
		require.NoError(t, errors.Join(s.Close(), tx.Discard()))
	}
}
