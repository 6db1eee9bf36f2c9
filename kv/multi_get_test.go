package kv

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// A multiReader is what has a MultiGet.
type multiReader interface {
	Reader
	MultiGet(keys [][]byte) ([][]byte, error)
}

// multiCheck compares MultiGet of random keys, some of them twice, with the model and
// with Get.
func (r *modelRun) multiCheck(db multiReader, m storetest.ModelStore) {
	keys := make([][]byte, r.rng.IntN(60))
	for i := range keys {
		keys[i] = r.key()
		if i > 0 && r.rng.IntN(10) == 0 {
			keys[i] = keys[r.rng.IntN(i)]
		}
	}
	values, err := db.MultiGet(keys)
	require.NoError(r.t, err)
	require.Len(r.t, values, len(keys))
	for i, k := range keys {
		want, present := m.Get(string(k), r.clock.Now())
		require.Equal(r.t, present, values[i] != nil, "%q", k)
		require.Equal(r.t, want, string(values[i]), "%q", k)
		r.check(db, m, k)
	}
	// A copy: the caller's to write to, and to append to.
	for i := range values {
		values[i] = append(values[i], "xyz"...)
		clear(values[i])
	}
}

func (r *modelRun) multiCheckTx() {
	tx, err := r.db.Begin(true)
	require.NoError(r.t, err)
	m := maps.Clone(r.m)
	for range r.rng.IntN(10) {
		k := r.key()
		if r.rng.IntN(3) == 0 {
			require.NoError(r.t, tx.Delete(k))
			m.Delete(string(k))
		} else {
			v := r.value()
			require.NoError(r.t, tx.Set(k, v))
			m.Set(string(k), string(v))
		}
	}
	r.multiCheck(tx, m)
	require.NoError(r.t, tx.Discard())
}

func TestMultiGetModel(t *testing.T) {
	t.Parallel()
	multiGetModel(t, storetest.ModelSeeds/10, func(r *modelRun) { r.fs = vfs.NewMem() })
}

// multiGetModel goes through histories of stores that are where place says.
func multiGetModel(t *testing.T, seeds uint64, place func(r *modelRun)) {
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 32))
		r := &modelRun{t: t, rng: rng, opts: randomOptions(rng), m: storetest.ModelStore{}, clock: &storetest.Clock{}}
		place(r)
		r.open()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r.t = t
			for i := range 300 {
				r.step()
				switch {
				case i%10 != 0:
				case len(r.snaps) > 0 && rng.IntN(3) == 0:
					s := r.snaps[rng.IntN(len(r.snaps))]
					r.multiCheck(s.s, s.m)
				case rng.IntN(3) == 0:
					r.multiCheckTx()
				default:
					r.multiCheck(r.db, r.m)
				}
			}
			checkIdentities(t, r.db.Metrics())
		}) {
			return
		}
		r.release()
		require.NoError(t, r.db.Close())
	}
}

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
