//go:build !race

package kv

import (
	"testing"

	"github.com/stretchr/testify/require"
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
	require.NoError(t, db.Flush())
	require.NoError(t, db.Compact(nil, nil))
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
		scan()
	}
	m := db.Metrics()
	require.Less(t, m.CacheBytes, int64(300<<10))
	// Pools lose buffers to the collector now and then.
	require.Less(t, testing.AllocsPerRun(2000, read), 0.2)
	require.Less(t, testing.AllocsPerRun(2000, scan), 1.3, "an iterator of one")
	require.NoError(t, db.Close())
}
