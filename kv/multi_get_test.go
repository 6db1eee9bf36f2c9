package kv

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/sstable"
)

// multiStore returns a store of n keys whose cache takes a small part of them.
func multiStore(tb testing.TB, dir string, n int, o Options) *DB {
	tb.Helper()
	o.MemtableSize = 1 << 20
	db, err := Open(dir, &o)
	require.NoError(tb, err)
	var key []byte
	for i := range n {
		key = readBenchKey(key, i)
		storetest.Fine(tb, db.Set(key, fmt.Appendf(nil, "value %d", i), Async))
	}
	require.NoError(tb, db.Flush(tb.Context()))
	require.NoError(tb, db.Compact(tb.Context(), nil, nil))
	return db
}

func TestMultiGetReadsABlockOnce(t *testing.T) {
	db := multiStore(t, t.TempDir(), 20_000, Options{CacheSize: -1})
	defer func() { require.NoError(t, db.Close()) }()
	var keys [][]byte
	for i := range 3000 { // more than one run of keys, in no order, some absent
		keys = append(keys, readBenchKey(nil, i*10))
	}
	before := db.Metrics()
	values, err := db.MultiGet(keys)
	require.NoError(t, err)
	for i := range values {
		if i*10 < 20_000 {
			require.Equal(t, fmt.Sprintf("value %d", i*10), string(values[i]))
		} else {
			require.Nil(t, values[i])
		}
	}
	after := db.Metrics()
	checkIdentities(t, after)
	read, blocks := uint64(0), uint64(0)
	db.state.Load().version.All(func(n int, table *version.Table) {
		r, err := table.Open(&db.tables)
		require.NoError(t, err)
		blocks += r.Properties().DataBlocks
	})
	for n := range after.Levels {
		read += after.Levels[n].Lookup.BlocksFromDisk - before.Levels[n].Lookup.BlocksFromDisk
	}
	runs := uint64(len(keys)/multiGetRun + 1)
	require.LessOrEqual(t, read, blocks+runs)
	require.Equal(t, uint64(len(keys)), after.Gets-before.Gets)
}

func TestMultiGetOfNothingAndOfAClosedStore(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	values, err := db.MultiGet(nil)
	require.NoError(t, err)
	require.Empty(t, values)
	require.NoError(t, db.Set([]byte("empty"), nil, nil))
	values, err = db.MultiGet([][]byte{[]byte("empty"), nil, []byte("none")})
	require.NoError(t, err)
	require.Equal(t, [][]byte{{}, nil, nil}, values)
	s := db.NewSnapshot()
	require.NoError(t, s.Close())
	_, err = s.MultiGet(nil)
	require.ErrorIs(t, err, ErrClosed)
	tx, err := db.Begin(false)
	require.NoError(t, err)
	require.NoError(t, tx.Discard())
	_, err = tx.MultiGet(nil)
	require.ErrorIs(t, err, ErrTxDone)
	require.NoError(t, db.Close())
	_, err = db.MultiGet(nil)
	require.ErrorIs(t, err, ErrClosed)
}

// What a transaction looked up with MultiGet conflicts like what it looked up with Get.
func TestMultiGetConflicts(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	tx, err := db.Begin(true)
	require.NoError(t, err)
	_, err = tx.MultiGet([][]byte{[]byte("a"), []byte("b")})
	require.NoError(t, err)
	require.NoError(t, tx.Set([]byte("c"), nil))
	require.NoError(t, db.Set([]byte("b"), nil, nil))
	require.ErrorIs(t, tx.Commit(nil), ErrConflict)
	require.NoError(t, db.Close())
}

func TestMultiGetReportsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := multiStore(t, dir, 20_000, Options{Compression: sstable.NoCompression})
	require.NoError(t, db.Close())
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	data, err := os.ReadFile(names[0])
	require.NoError(t, err)
	data[100] ^= 1
	require.NoError(t, os.WriteFile(names[0], data, 0o600))
	db, err = Open(dir, nil)
	require.NoError(t, err)
	keys := make([][]byte, 20_000)
	for i := range keys {
		keys[i] = readBenchKey(nil, i)
	}
	values, err := db.MultiGet(keys)
	require.ErrorIs(t, err, ErrCorruption)
	require.Nil(t, values)
	require.NoError(t, db.Close())
}

// Writers, flushes and compactions go on beside lookups of many keys.
func TestMultiGetBesideWriters(t *testing.T) {
	t.Parallel()
	db, err := Open("", &Options{InMemory: true, MemtableSize: 64 << 10, CacheSize: 64 << 10, TargetFileSize: 16 << 10})
	require.NoError(t, err)
	const n, rounds = 500, 40
	write := func(round int) {
		b := db.NewBatch()
		for i := range n {
			require.NoError(t, b.Set(readBenchKey(nil, i), fmt.Appendf(nil, "%060d", round)))
		}
		require.NoError(t, b.Commit(Async))
	}
	write(0)
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = readBenchKey(nil, i)
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				values, err := db.MultiGet(keys)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range values {
					if string(values[i]) != string(values[0]) {
						t.Errorf("of one batch, key %d has %q and key 0 %q", i, values[i], values[0])
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for round := range rounds {
		write(round)
	}
	close(stop)
	readers.Wait()
	require.NoError(t, db.Close())
}
