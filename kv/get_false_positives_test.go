package kv

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/explain"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/sstable"
)

// A maybeFilter lets every key pass.
type maybeFilter struct{ filterpolicy.Policy }

func newMaybeFilter(t testing.TB) maybeFilter {
	p, err := filterpolicy.Parse("bloom:1")
	require.NoError(t, err)
	return maybeFilter{p}
}

func (maybeFilter) Name() string                                      { return "maybe" }
func (maybeFilter) String() string                                    { return "maybe" }
func (f maybeFilter) Decode(data []byte) (filterpolicy.Filter, error) { return f, nil }
func (maybeFilter) MayContainHash(uint64) bool                        { return true }

// readsOf returns what f cost.
func readsOf(db *DB, f func()) metrics.Lookups {
	before := db.Metrics()
	f()
	after := db.Metrics().Sub(before)
	return after.Lookup()
}

func blocksOf(c metrics.Lookups) int { return int(c.BlocksFromCache + c.BlocksFromDisk) }

// requireAbsentEverywhere fails the test unless there is nothing under key, in all that a store offers.
func requireAbsentEverywhere(t *testing.T, db *DB, key []byte) {
	t.Helper()
	_, err := db.Get(key)
	require.ErrorIs(t, err, ErrNotFound)
	ok, err := db.Has(key)
	require.True(t, err == nil && !ok)
	_, err = db.GetSize(key)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = db.Expiry(key)
	require.ErrorIs(t, err, ErrNotFound)
	for _, n := range []int{1, 8} {
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = key
		}
		values, err := db.MultiGet(keys)
		require.NoError(t, err)
		require.Equal(t, make([][]byte, n), values)
	}
	snap := db.NewSnapshot()
	_, err = snap.Get(key)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, snap.Close())
	tx, err := db.Begin(true)
	require.NoError(t, err)
	_, err = tx.Get(key)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, tx.Discard())
}

func TestAFalsePositiveIsPaidOnce(t *testing.T) {
	db := settledStore(t, 1000, &Options{Filter: newMaybeFilter(t)})
	absent := settledKey(500)
	absent[len(absent)-1] = 'x'
	c := readsOf(db, func() {
		for range 1000 {
			_, err := db.Get(absent)
			require.ErrorIs(t, err, ErrNotFound)
		}
	})
	require.Equal(t, 1, blocksOf(c))
	require.EqualValues(t, 1, c.FilterFalsePositives)
	require.EqualValues(t, 999, c.FilterRemembered)
	require.EqualValues(t, 1000, c.FilterChecks())
	require.EqualValues(t, 1, c.IndexLookups)
	require.InDelta(t, 1, c.FalsePositiveRate(), 0, "the filter errs as often as before")
	e, err := db.Explain(absent)
	require.NoError(t, err)
	require.Equal(t, explain.RuledOutByMemory, e.Steps[len(e.Steps)-1].Verdict)
	require.Equal(t, sstable.Remembered, e.Steps[len(e.Steps)-1].Probe.Filter)
	require.Contains(t, e.String(), "false positives")
	m := db.Metrics()
	require.Equal(t, 1, m.FalsePositives)
	require.EqualValues(t, 256<<10+80, m.FalsePositiveMemory)
	checkIdentities(t, m)
}

// Whatever asks first pays, and all others know.
func TestEveryLookupRemembers(t *testing.T) {
	db := settledStore(t, 1000, &Options{Filter: newMaybeFilter(t)})
	absent := func(i int) []byte { return append(settledKey(i), 'x') }
	first := []func(key []byte) error{
		func(key []byte) error { _, err := db.Get(key); return err },
		func(key []byte) error { _, err := db.Has(key); return err },
		func(key []byte) error { _, err := db.GetSize(key); return err },
		func(key []byte) error { _, err := db.Expiry(key); return err },
		func(key []byte) error { _, err := db.MultiGet([][]byte{key}); return err },
		func(key []byte) error { _, err := db.MultiGet([][]byte{key, key, key, key}); return err },
		func(key []byte) error { _, err := db.Explain(key); return err },
	}
	for i, ask := range first {
		if err := ask(absent(i)); !errors.Is(err, ErrNotFound) {
			require.NoError(t, err)
		}
		c := readsOf(db, func() { requireAbsentEverywhere(t, db, absent(i)) })
		require.Zero(t, blocksOf(c), i)
		require.EqualValues(t, 15, c.FilterRemembered, i)
		require.Zero(t, c.IndexLookups+c.FilterNegatives, i)
	}
}

// In an object store a false positive is a request, which is paid for once too.
func TestFalsePositivesInAnObjectStore(t *testing.T) {
	db := openObjects(t, objstore.NewMem(), &Options{Filter: newMaybeFilter(t)})
	for _, k := range []string{"a", "z"} {
		set(t, db, k, "1")
	}
	require.NoError(t, db.Flush(t.Context()))
	keys := [][]byte{[]byte("k"), []byte("a"), []byte("m")}
	for i := range 3 {
		c := readsOf(db, func() {
			values, err := db.MultiGet(keys)
			require.NoError(t, err)
			require.Equal(t, [][]byte{nil, []byte("1"), nil}, values)
		})
		require.EqualValues(t, []int{2, 0, 0}[i], c.FilterFalsePositives)
		require.EqualValues(t, []int{0, 2, 2}[i], c.FilterRemembered)
		require.EqualValues(t, 1, c.FilterTruePositives)
	}
	requireAbsentEverywhere(t, db, keys[0])
	require.EqualValues(t, 2, db.Metrics().Lookup().FilterFalsePositives)
	require.NoError(t, db.Close())
}

func TestFalsePositivesAreNotRemembered(t *testing.T) {
	db := settledStore(t, 1000, &Options{Filter: newMaybeFilter(t), FalsePositiveMemory: -1})
	long := append(settledKey(500), strings.Repeat("x", 64)...)
	remembers := settledStore(t, 1000, &Options{Filter: newMaybeFilter(t)})
	for _, s := range []struct {
		db  *DB
		key []byte
	}{{db, append(settledKey(500), 'x')}, {remembers, long}, {remembers, settledKey(500)}} {
		c := readsOf(s.db, func() {
			for range 10 {
				_, _ = s.db.Get(s.key)
			}
		})
		require.Equal(t, 10, blocksOf(c))
		require.Zero(t, c.FilterRemembered)
		require.Zero(t, s.db.Metrics().FalsePositiveMemory, "nor is anything taken for it")
	}
}

// A key that is in a file, in whatever way, is no false positive: another snapshot, or another moment, sees it.
func TestVersionsThatAreNotVisible(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Filter: newMaybeFilter(t), Clock: clock.Time, Merger: Int64Add})
	for _, k := range []string{"a", "z"} {
		set(t, db, k, "bound")
	}
	before := db.NewSnapshot()
	set(t, db, "new", "v")
	require.NoError(t, db.Delete([]byte("deleted"), Async))
	require.NoError(t, db.SetTTL([]byte("expired"), []byte("v"), time.Second, Async))
	require.NoError(t, db.Merge([]byte("merged"), AppendInt64(nil, 1), Async))
	require.NoError(t, db.Flush(t.Context()))
	clock.Advance(time.Minute)
	for range 3 {
		for _, k := range []string{"new", "deleted", "expired", "merged"} {
			_, err := before.Get([]byte(k))
			require.ErrorIs(t, err, ErrNotFound)
		}
		for _, k := range []string{"deleted", "expired"} {
			_, err := db.Get([]byte(k))
			require.ErrorIs(t, err, ErrNotFound)
		}
	}
	require.Zero(t, db.Metrics().FalsePositives)
	for _, k := range []string{"new", "merged"} {
		_, err := db.Get([]byte(k))
		require.NoError(t, err)
	}
	clock.Advance(-2 * time.Minute)
	_, err := db.Get([]byte("expired"))
	require.NoError(t, err)
	require.NoError(t, before.Close())
}

// collisions returns keys of 16 bytes, all of which have one hash: any first half has a second half for which xxhash64
// comes to the same.
func collisions(n int) [][]byte {
	const prime1, prime2, prime4, prime5 = 0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x85ebca77c2b2ae63,
		0x27d4eb2f165667c5
	inverse := func(p uint64) uint64 {
		x := p
		for range 6 {
			x *= 2 - p*x
		}
		return x
	}
	round := func(w uint64) uint64 { return bits.RotateLeft64(w*prime2, 31) * prime1 }
	after := func(w uint64) uint64 {
		start := uint64(prime5)
		start += 16
		return bits.RotateLeft64(start^round(w), 27)*prime1 + prime4
	}
	wanted := after(0) ^ round(0)
	keys := make([][]byte, n)
	for i := range keys {
		first := uint64(i)
		second := bits.RotateLeft64((wanted^after(first))*inverse(prime1), -31) * inverse(prime2)
		keys[i] = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, first), second)
	}
	return keys
}

// Keys that somebody has made so that they have the hash of a key that is there pass every filter, and
// hide nothing.
func TestMadeCollisions(t *testing.T) {
	keys := collisions(200)
	present := map[int]bool{}
	db := openMem(t, nil)
	for i, key := range keys {
		require.Equal(t, filterpolicy.Hash(keys[0]), filterpolicy.Hash(key))
		if present[i] = i%10 == 3; present[i] {
			require.NoError(t, db.Set(key, []byte(strconv.Itoa(i)), Async))
		}
	}
	require.NoError(t, db.Set([]byte{255, 255}, nil, Async))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	check := func() {
		values, err := db.MultiGet(keys)
		require.NoError(t, err)
		for i, key := range keys {
			value, err := db.Get(key)
			require.Equal(t, present[i], err == nil)
			require.Equal(t, string(value), string(values[i]))
			if present[i] {
				require.Equal(t, strconv.Itoa(i), string(value))
			}
		}
	}
	for range 5 {
		check()
	}
	c := readsOf(db, func() {
		for range 100 {
			_, err := db.Get(keys[199])
			require.ErrorIs(t, err, ErrNotFound)
		}
	})
	require.GreaterOrEqual(t, c.FilterRemembered, uint64(90), "false positives they are, though for a few slots")
	for i, key := range keys {
		if !present[i] && i%2 == 0 {
			present[i] = true
			require.NoError(t, db.Set(key, []byte(strconv.Itoa(i)), Async))
		}
	}
	require.NoError(t, db.Flush(t.Context()))
	check()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	check()
}

// Files of one id, which whoever writes them can choose, are told apart.
func TestFilesOfOneID(t *testing.T) {
	maybe := newMaybeFilter(t)
	dir := t.TempDir()
	db := openDir(t, dir, &Options{Filter: maybe})
	o := &sstable.WriterOptions{Filter: maybe, ID: 4711}
	from := t.TempDir()
	require.NoError(t, db.Ingest(t.Context(), []string{ingestFile(t, vfs.OS, filepath.Join(from, "1"), o, "a=1",
		"z=1")}, nil))
	for range 2 {
		_, err := db.Get([]byte("k"))
		require.ErrorIs(t, err, ErrNotFound)
	}
	require.EqualValues(t, 1, db.Metrics().Lookup().FilterRemembered)
	require.NoError(t, db.Ingest(t.Context(), []string{ingestFile(t, vfs.OS, filepath.Join(from, "2"), o, "a=2",
		"k=2", "z=2")}, nil))
	requireContents(t, storetest.Model{"a": "2", "k": "2", "z": "2"}, db)
	require.NoError(t, db.Close())
	db = openDir(t, dir, &Options{Filter: maybe})
	require.Zero(t, db.Metrics().FalsePositives, "nothing stays beyond Close")
	requireContents(t, storetest.Model{"a": "2", "k": "2", "z": "2"}, db)
	require.NoError(t, db.Close())
}

// Readers that remember, while the keys come to be there: who sees a write sees it in spite of all that is remembered.
func TestRememberingWhileKeysAreWritten(t *testing.T) {
	db := openMem(t, &Options{Filter: newMaybeFilter(t), MemtableSize: 64 << 10, TargetFileSize: 16 << 10,
		FalsePositiveMemory: 1 << 10})
	const n = 300
	for i := range n {
		require.NoError(t, db.Set(settledKey(2*i), make([]byte, 100), Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	var mu sync.Mutex // guards written
	written := map[int]bool{}
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 20_000 {
				i := rng.IntN(n)
				mu.Lock()
				must := written[i]
				mu.Unlock()
				ok, err := db.Has(settledKey(2*i + 1))
				if err != nil || must && !ok {
					t.Errorf("%d: %t, %v", i, ok, err)
					return
				}
			}
		})
	}
	for i := range n {
		require.NoError(t, db.Set(settledKey(2*i+1), make([]byte, 100), Async))
		mu.Lock()
		written[i] = true
		mu.Unlock()
		if i%50 == 0 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	wg.Wait()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for i := range 2 * n {
		ok, err := db.Has(settledKey(i))
		require.True(t, ok && err == nil)
	}
	checkIdentities(t, db.Metrics())
}

func TestFalsePositiveMemoryOption(t *testing.T) {
	for _, o := range []Options{{FalsePositiveMemory: 127}, {FalsePositiveMemory: 1<<30 + 1},
		{FalsePositiveMemory: 1 << 20, MemoryBudget: NewMemoryBudget(16 << 20)}} {
		o.InMemory = true
		_, err := Open("", &o)
		require.ErrorIs(t, err, ErrInvalidOptions)
		require.ErrorContains(t, err, "FalsePositiveMemory")
	}
	o, err := ParseOptions("FalsePositiveMemory = 1MiB")
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, o.FalsePositiveMemory)
	b := NewMemoryBudget(16 << 20)
	for _, c := range []struct {
		o    Options
		want int64
	}{
		{Options{}, 256 << 10},
		{Options{MemoryLimit: 16 << 20}, 16 << 10},
		{Options{MemoryLimit: 1 << 30}, 256 << 10},
		{Options{MemoryBudget: b}, 16 << 10},
		{Options{MemoryBudget: b, FalsePositiveMemory: -1}, -1},
		{Options{FalsePositiveMemory: -5}, -5},
	} {
		got, err := c.o.withDefaults()
		require.NoError(t, err)
		require.Equal(t, c.want, got.FalsePositiveMemory)
	}
}

// Stores of one budget remember in one memory, each for itself.
func TestStoresOfABudgetRemember(t *testing.T) {
	b := NewMemoryBudget(16 << 20)
	o := &Options{Filter: newMaybeFilter(t), MemoryBudget: b}
	dbs := []*DB{openMem(t, o), openMem(t, o)}
	key := []byte("k")
	for i, db := range dbs {
		set(t, db, "a", "1")
		set(t, db, "z", "1")
		if i == 1 {
			set(t, db, "k", "1")
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	for range 3 {
		_, err := dbs[0].Get(key)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = dbs[1].Get(key)
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, dbs[0].Metrics().Lookup().FilterRemembered)
	require.EqualValues(t, 16<<10+80, b.Usage().Remembered)
}
