package kv

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/siftkv/siftkv/internal/scale"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/sstable"
)

// A shortStore is many small tables whose filters and indexes are large beside the limits
// of the tests: 16,000 keys in some 30 tables, with four bytes of filter for each.
func shortStore(t *testing.T) (dir string, filters int64) {
	t.Helper()
	dir = t.TempDir()
	db := openShort(t, dir, 0)
	for i := range 16_000 {
		storetest.Fine(t, db.Set(shortKey(i), fmt.Appendf(nil, "%0100d", i), Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for _, tb := range db.installed().Levels[lastLevel].Tables() {
		filters += int64(tb.FilterBytes)
	}
	require.NoError(t, db.Close())
	return dir, filters
}

// openShort opens the store with room for so many bytes of blocks, filters and indexes: fewer
// than Options.MemoryLimit takes.
func openShort(t *testing.T, dir string, limit int64) *DB {
	t.Helper()
	db := openDir(t, dir, &Options{MemtableSize: 64 << 10, TargetFileSize: 64 << 10,
		Compression: sstable.NoCompression, Filter: mustParse("blocked:32"), CacheSize: 64 << 10})
	require.Zero(t, db.Metrics().OpenTables)
	if limit > 0 {
		db.tables.Memory = &tablecache.Memory{Cache: db.memory.cache, CacheSize: 64 << 10}
		db.tables.Memory.SetLimit(limit)
	}
	return db
}

func shortKey(i int) []byte { return fmt.Appendf(nil, "key/%06d", i) }

// readsPerLookup returns how many blocks and filters lookups of random keys read, after as many
// lookups before.
func readsPerLookup(t *testing.T, db *DB, pick func(*rand.Rand) int, suffix string) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	run := func(n int) {
		for range n {
			ok, err := db.Has(append(shortKey(pick(rng)), suffix...))
			storetest.Fine(t, err)
			if ok != (suffix == "") {
				require.Equal(t, suffix == "", ok)
			}
		}
	}
	const lookups = 10_000
	for range 3 {
		run(lookups)
		runtime.GC() // what gave way goes
	}
	before := db.Metrics()
	run(lookups)
	after := db.Metrics()
	checkIdentities(t, after)
	reads := after.FilterLoads - before.FilterLoads + after.ClosedTables - before.ClosedTables
	for n := range after.Levels {
		l := after.Levels[n].Lookup
		reads += l.BlocksFromDisk + l.IndexLeavesFromDisk
		l = before.Levels[n].Lookup
		reads -= l.BlocksFromDisk + l.IndexLeavesFromDisk
	}
	return float64(reads) / lookups
}

// What a lookup reads grows with what does not fit, and never by a leap: neither where filters
// cease to fit, nor where indexes do.
func TestReadsGrowSmoothlyAsMemoryShrinks(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	dir, filters := shortStore(t)
	uniform := func(rng *rand.Rand) int { return rng.IntN(16_000) }
	few := func(rng *rand.Rand) int { return int(float64(16_000) * rng.Float64() * rng.Float64() * rng.Float64()) }
	for name, pick := range map[string]func(*rand.Rand) int{"uniform": uniform, "skewed": few} {
		for _, suffix := range []string{"x", ""} {
			last, percents := -1.0, []int64{105, 75, 25}
			if scale.Long() {
				percents = []int64{105, 100, 95, 75, 50, 25, 10}
			}
			for _, percent := range percents {
				db := openShort(t, dir, 2*filters*percent/100)
				reads := readsPerLookup(t, db, pick, suffix)
				m := db.Metrics()
				require.NoError(t, db.Close())
				t.Logf("%s %q: room for %d %%: %.3f reads, %d skipped, %d loads, %d closed", name, suffix, percent,
					reads, m.FiltersSkipped, m.FilterLoads, m.ClosedTables)
				missing := 1 - float64(min(percent, 100))/100
				require.GreaterOrEqual(t, reads, last-0.02, "%s %q at %d %%", name, suffix, percent)
				if suffix != "" {
					// What is on disk is a little more: filters are kept as wholes.
					require.LessOrEqual(t, reads, missing+0.12, "%s %q at %d %%", name, suffix, percent)
				} else {
					require.LessOrEqual(t, reads, 1.01, "%s %q at %d %%", name, suffix, percent)
				}
				last = reads
			}
		}
	}
}

// Filters and readers come and go while lookups and iterators use them, and no answer changes.
func TestFiltersAndReadersComeAndGoBesideReaders(t *testing.T) {
	t.Parallel()
	dir, filters := shortStore(t)
	db := openShort(t, dir, filters/2)
	held, err := db.NewIter(nil)
	require.NoError(t, err)
	require.True(t, held.First())
	var readers sync.WaitGroup
	load := func(rng *rand.Rand) {
		at := rng.IntN(15_000) // the load moves from tables to tables
		for range 4000 / storetest.RaceFactor {
			i := at + rng.IntN(1000)
			ok, err := db.Has(shortKey(i))
			assert.NoError(t, err)
			assert.True(t, ok, "%d", i)
			ok, err = db.Has(append(shortKey(i), 'x'))
			assert.NoError(t, err)
			assert.False(t, ok, "%d", i)
		}
	}
	for n := range 4 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 5))
			for round := range scale.Fewer(8, 4) {
				load(rng)
				if n == round%4 {
					runtime.GC()
				}
			}
		})
	}
	n := 1
	for held.Next() {
		n++
	}
	readers.Wait()
	require.Equal(t, 16_000, n)
	require.NoError(t, held.Close())
	rng := rand.New(rand.NewPCG(9, 5))
	m := db.Metrics()
	for m.FilterLoads == 0 || m.ClosedTables == 0 { // lookups are sampled: both come in the end
		load(rng)
		runtime.GC()
		m = db.Metrics()
	}
	checkIdentities(t, m)
	require.NoError(t, db.Close())
	require.Zero(t, db.openFiles.Used(), "files of readers that were given up are closed as well")
}

// A filter that is damaged gives up for good the room that was made for it, and counts once.
func TestADamagedFilterIsReadOnceWhenMemoryIsShort(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "lookups of one goroutine")
	dir, filters := shortStore(t)
	db := openShort(t, dir, 0)
	tables := db.installed().Levels[lastLevel].Tables()
	damaged := tables[len(tables)/2:]
	for _, tb := range damaged {
		r, err := tb.Open(&db.tables)
		require.NoError(t, err)
		rewrite(t, db.tables.Path(tb.Num), flip(int(r.Properties().DataBytes)+40)) // in the filter
	}
	require.NoError(t, db.Close())

	half, err := strconv.Atoi(strings.TrimPrefix(string(damaged[0].Smallest), "key/"))
	require.NoError(t, err)
	for _, limit := range []int64{filters, filters / 2} { // half of them fit, or a quarter
		db = openShort(t, dir, limit)
		var log bytes.Buffer
		db.tables.Log = slog.New(slog.NewTextHandler(&log, nil))
		readsPerLookup(t, db, func(rng *rand.Rand) int { return rng.IntN(half) }, "x") // these fill the room
		require.Zero(t, db.Metrics().UnusableFilters)
		for range 2 {
			readsPerLookup(t, db, func(rng *rand.Rand) int { return half + 1000 + rng.IntN(15_000-half) }, "x")
		}
		m := db.Metrics()
		require.NotZero(t, m.UnusableFilters)
		require.LessOrEqual(t, m.UnusableFilters, uint64(len(damaged)))
		require.EqualValues(t, m.UnusableFilters, strings.Count(log.String(), "a filter is not usable"))
		require.NotContains(t, log.String(), "could not be read")
		require.NoError(t, db.Close())
	}
}
