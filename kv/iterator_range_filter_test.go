package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/sstable"
)

// youngFiles makes a store of n young files, each with so many random keys of 16 bytes, and returns the keys
// of each file, in order.
func youngFiles(tb testing.TB, o *Options, n, keys int) (*DB, [][]string) {
	tb.Helper()
	o.L0CompactionThreshold, o.L0SlowdownThreshold, o.L0StopThreshold = 100, 100, 200
	db := openMem(tb, o)
	rng := rand.New(rand.NewPCG(1, 16))
	files := make([][]string, n)
	for f := range files {
		for range keys {
			k := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, rng.Uint64()), rng.Uint64())
			require.NoError(tb, db.Set(k, k, NoSync))
			files[f] = append(files[f], string(k))
		}
		require.NoError(tb, db.Flush(tb.Context()))
		slices.Sort(files[f])
	}
	return db, files
}

// scanned returns what a scan was counted as: First or Last within [lo, hi), and through all.
func scanned(tb testing.TB, db *DB, lo, hi []byte, back bool) (entries int, c metrics.Scans) {
	tb.Helper()
	before := db.Metrics()
	it, err := db.NewIter(&IterOptions{LowerBound: lo, UpperBound: hi})
	require.NoError(tb, err)
	if back {
		for ok := it.Last(); ok; ok = it.Prev() {
			entries++
		}
	} else {
		for ok := it.First(); ok; ok = it.Next() {
			entries++
		}
	}
	require.NoError(tb, it.Close())
	m := db.Metrics().Sub(before)
	return entries, m.Scans()
}

// emptyRange returns a range without a key of any file, as wide as a part of the mean distance of the
// keys of all of them.
func emptyRange(rng *rand.Rand, all []string, part float64) (lo, hi []byte) {
	gap := float64(1<<63) / float64(len(all)) * 2
	for {
		from := rng.Uint64()
		to := from + max(uint64(gap*part), 1)
		lo, hi = binary.BigEndian.AppendUint64(nil, from), binary.BigEndian.AppendUint64(nil, to)
		i, _ := slices.BinarySearch(all, string(lo))
		if to > from && (i == len(all) || all[i] >= string(hi)) {
			return lo, hi
		}
	}
}

// Every file that a scan comes to is denied or read, and what is read is empty or not: as an exact filter,
// or none, must have it, file by file.
func TestScansAreCountedByFile(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "iterators of one goroutine")
	for _, policy := range []filterpolicy.RangePolicy{nil, exactranges.Policy{}} {
		db, files := youngFiles(t, &Options{RangeFilter: policy, BlockSize: 512}, 8, 500)
		all := slices.Sorted(slices.Values(slices.Concat(files...)))
		rng := rand.New(rand.NewPCG(2, 2))
		for n := range 600 {
			from := rng.Uint64()
			width := uint64(1) << (64 - rng.IntN(30))
			lo, hi := binary.BigEndian.AppendUint64(nil, from), binary.BigEndian.AppendUint64(nil, from+width)
			if n%5 == 0 {
				lo, hi = emptyRange(rng, all, 1)
			}
			if bytes.Compare(lo, hi) >= 0 {
				continue
			}
			var want metrics.Scans
			for _, f := range files {
				i, _ := slices.BinarySearch(f, string(lo))
				j, _ := slices.BinarySearch(f, string(hi))
				switch inside := i > 0 && j < len(f); {
				case i < j:
					want.WithEntries++
					if i > 0 && j < len(f) && policy != nil {
						want.RangeTruePositives++
					}
				case !inside: // out of bounds
				case policy != nil:
					want.DeniedByRange++
				default:
					want.Empty++
				}
			}
			want.Files = want.DeniedByRange + want.Empty + want.WithEntries
			for _, back := range []bool{false, true} {
				_, got := scanned(t, db, lo, hi, back)
				if got.WithEntries == 0 && policy != nil {
					require.Zero(t, got.BlocksFromCache+got.BlocksFromDisk)
				}
				got.BlocksFromCache, got.BlocksFromDisk, got.BytesFromDisk, got.BytesDecoded = 0, 0, 0, 0
				require.Equal(t, want, got, "[%x, %x) back=%t", lo, hi, back)
			}
		}
		require.NoError(t, db.Close())
	}
}

// A scan with nothing to find reads a fifth of the blocks that it would read without range filters, or fewer.
func TestEmptyScansReadFewBlocks(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "iterators of one goroutine")
	for _, policy := range rangePolicies(t)[:2] { // the exact ones, and cut:6
		without, files := youngFiles(t, &Options{RangeFilter: filterbudget.NoRanges}, 16, 2000)
		with, _ := youngFiles(t, &Options{RangeFilter: policy}, 16, 2000)
		all := slices.Sorted(slices.Values(slices.Concat(files...)))
		rng := rand.New(rand.NewPCG(3, 3))
		for _, part := range []float64{0.01, 0.1, 1} {
			var a, b metrics.Scans
			for n := range 500 {
				lo, hi := emptyRange(rng, all, part)
				entries, c := scanned(t, without, lo, hi, n%2 == 0)
				require.Zero(t, entries)
				a = a.Add(c)
				entries, c = scanned(t, with, lo, hi, n%2 == 0)
				require.Zero(t, entries)
				b = b.Add(c)
			}
			blocks := func(c metrics.Scans) float64 { return float64(c.BlocksFromCache + c.BlocksFromDisk) }
			require.LessOrEqual(t, blocks(b), 0.2*blocks(a), "%s, %g of a gap", policy, part)
			t.Logf("%s, %g of a gap: %.3f blocks, %.3f without", policy, part, blocks(b)/500, blocks(a)/500)
		}
		require.NoError(t, with.Close())
		require.NoError(t, without.Close())
	}
}

// The last level's files have no range filters, unless they are asked for; those of all others have, in a tiered
// store also those of the last level's younger runs. Compact brings files in line.
func TestRangeFiltersAreForYoungLevels(t *testing.T) {
	for _, all := range []bool{false, true} {
		o := &Options{RangeFilter: exactranges.Policy{}, RangeFilterLastLevel: all, L0CompactionThreshold: 100}
		db := openMem(t, o)
		fill := func() {
			for i := range 100 {
				set(t, db, fmt.Sprintf("k%03d", i), "v")
			}
			require.NoError(t, db.Flush(t.Context()))
		}
		have := func() (levels []int) {
			s := db.acquire(0)
			defer s.release(0)
			for n := range s.version.Levels {
				for _, table := range s.version.Levels[n].Tables() {
					r, err := table.Open(&db.tables)
					require.NoError(t, err)
					if r.HasRangeFilter() {
						levels = append(levels, n)
					}
				}
			}
			return levels
		}
		fill()
		require.Equal(t, []int{0}, have())
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		fill()
		want := []int{0}
		if all {
			want = []int{0, lastLevel}
		}
		require.Equal(t, want, have())
		require.Positive(t, db.Metrics().Levels[0].RangeFilterBytes)
		require.Equal(t, all, db.Metrics().Levels[lastLevel].RangeFilterBytes > 0)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		compactions := db.Metrics().Compactions
		db.opts.RangeFilterLastLevel = !all
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.Equal(t, compactions+1, db.Metrics().Compactions, "the files have other filters than new ones")
		require.Equal(t, all, len(have()) == 0)
	}
}

// Files are taken in, backed up and copied as they are.
func TestRangeFiltersStayWithTheirFiles(t *testing.T) {
	t.Parallel()
	o := &Options{RangeFilter: exactranges.Policy{}}
	dir := t.TempDir()
	db := openDir(t, dir, o)
	defer func() { require.NoError(t, db.Close()) }()
	file := ingestFile(t, vfs.OS, filepath.Join(t.TempDir(), "f"),
		&sstable.WriterOptions{RangeFilter: exactranges.Policy{}}, "a=1", "m=2", "z=3")
	require.NoError(t, db.Ingest(t.Context(), []string{file}, nil))
	denied := func(db *DB) uint64 {
		_, c := scanned(t, db, []byte("b"), []byte("c"), false)
		return c.DeniedByRange
	}
	require.EqualValues(t, 1, denied(db))
	var backup bytes.Buffer
	_, err := db.Backup(t.Context(), &backup, BackupMark{})
	require.NoError(t, err)
	copied, restored := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
	require.NoError(t, db.Checkpoint(t.Context(), copied))
	require.NoError(t, Restore(t.Context(), &backup, restored, nil))
	for _, dir := range []string{copied, restored} {
		other := openDir(t, dir, o)
		require.EqualValues(t, 1, denied(other), dir)
		require.NoError(t, other.Close())
	}
}

// A range filter that is damaged, or that nobody can decode, costs reads and no entries. It is counted once.
func TestUnusableRangeFiltersCostReads(t *testing.T) {
	t.Parallel()
	for _, policy := range []filterpolicy.RangePolicy{exactranges.Policy{}, nil} {
		dir := t.TempDir()
		db := openDir(t, dir, &Options{RangeFilter: exactranges.Policy{}, Compression: sstable.NoCompression})
		for _, k := range []string{"a", "m", "z"} {
			set(t, db, k, "v")
		}
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Close())
		if policy != nil {
			for name, data := range readDir(t, dir) {
				if at := strings.LastIndex(data, "exact ranges"); strings.HasSuffix(name, ".sst") {
					require.Positive(t, at)
					require.NoError(t, os.WriteFile(name, []byte(data[:at]+"X"+data[at+1:]), 0o600))
				}
			}
		}
		db = openDir(t, dir, &Options{RangeFilter: policy})
		for range 2 {
			entries, c := scanned(t, db, []byte("b"), []byte("c"), false)
			require.Zero(t, entries)
			require.Zero(t, c.DeniedByRange)
			require.EqualValues(t, 1, c.Empty)
			entries, _ = scanned(t, db, []byte("b"), []byte("zz"), true)
			require.Equal(t, 2, entries)
		}
		require.EqualValues(t, 1, db.Metrics().UnusableFilters)
		require.NoError(t, db.Close())
	}
}

// Where memory is short, scans too bring the filters back that they need.
func TestScansBringFiltersBack(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "scans of one goroutine; TestRangeFiltersUnderConcurrency has several")
	db, files := youngFiles(t, &Options{RangeFilter: exactranges.Policy{}, MemoryLimit: 4 << 20}, 4, 2000)
	all := slices.Sorted(slices.Values(slices.Concat(files...)))
	s := db.acquire(0)
	defer s.release(0)
	for _, table := range s.version.Level0() {
		r, err := table.Open(&db.tables)
		require.NoError(t, err)
		before, _ := r.PinnedBytes()
		require.Positive(t, before)
	}
	limit := db.memory.tables.Limit()
	db.memory.tables.SetLimit(1) // as if others had it all
	for _, table := range s.version.Level0() {
		require.NoError(t, db.tables.Close(&table.Entry))
		_, err := table.Open(&db.tables)
		require.NoError(t, err)
	}
	require.EqualValues(t, 4, db.Metrics().FiltersSkipped)
	db.memory.tables.SetLimit(limit)
	rng := rand.New(rand.NewPCG(4, 4))
	for range 2000 {
		lo, hi := emptyRange(rng, all, 0.1)
		scanned(t, db, lo, hi, false)
	}
	require.Zero(t, db.Metrics().FiltersSkipped)
	require.EqualValues(t, 4, db.Metrics().FilterLoads)
	lo, hi := emptyRange(rng, all, 0.1)
	_, c := scanned(t, db, lo, hi, false)
	require.Zero(t, c.Empty)
}

// What an iterator does is counted while it is open, too.
func TestLongLivedIteratorsAreCounted(t *testing.T) {
	db, _ := youngFiles(t, &Options{}, 2, 10)
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	const seeks = 1 << 10 // which are counted in groups
	for range seeks {
		require.True(t, it.First())
	}
	require.InDelta(t, 2*seeks, db.Metrics().Scans().WithEntries, 2)
	require.NoError(t, it.Close())
	require.EqualValues(t, 2*seeks, db.Metrics().Scans().WithEntries)
}

func TestExplainScanTellsEveryStep(t *testing.T) {
	prefix, err := filterpolicy.ParsePrefix("fixed:2")
	require.NoError(t, err)
	db := openMem(t, &Options{L0CompactionThreshold: 50, RangeFilter: exactranges.Policy{}, Prefix: prefix})
	fill := func(keys ...string) {
		for _, k := range keys {
			set(t, db, k, "v")
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	fill("aa1", "bb5", "cc9")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	fill("aa1", "bb1", "bb9", "zz1") // nothing between
	fill("aa1", "zz1")               // nothing with the prefix
	fill("bb4", "bb5")
	fill("x", "y")
	set(t, db, "bb6", "memory")
	explain := func(o *IterOptions) (s []string) {
		before := db.Metrics()
		e, err := db.ExplainScan(o)
		require.NoError(t, err)
		require.Zero(t, db.Metrics().Sub(before).Scans(), "it is not counted")
		for _, step := range e.Steps {
			s = append(s, fmt.Sprintf("%d %s", step.Level, step.Verdict))
		}
		return append(s, fmt.Sprint(e.OutOfBounds))
	}
	within := func(lo, hi string) *IterOptions {
		return &IterOptions{LowerBound: []byte(lo), UpperBound: []byte(hi)}
	}
	require.Equal(t, []string{"-1 entries", "0 entries", "0 prefix filter", "0 range filter", "6 entries",
		"[1 0 0 0 0 0 0]"}, explain(within("bb4", "bb7")))
	require.Equal(t, []string{"-1 no entries", "0 range filter", "0 range filter", "6 no entries",
		"[2 0 0 0 0 0 0]"}, explain(within("c", "cc9")))
	require.Equal(t, []string{"-1 entries", "0 entries", "0 entries", "0 entries", "0 entries", "6 entries",
		"[0 0 0 0 0 0 0]"}, explain(nil))
	e, err := db.ExplainScan(within("bb4", "bb7"))
	require.NoError(t, err)
	require.Contains(t, e.String(), "ruled out by range filter")
	require.Contains(t, e.String(), "ruled out by prefix filter")
	require.Contains(t, e.String(), "L0, files: 1")
}

// Readers of one store ask the same filters, while files come and go.
func TestRangeFiltersUnderConcurrency(t *testing.T) {
	for _, policy := range rangePolicies(t) {
		db := openMem(t, &Options{RangeFilter: policy, MemtableSize: 64 << 10, MemoryLimit: 4 << 20,
			L0CompactionThreshold: 2, TargetFileSize: 16 << 10})
		key := func(i int) []byte { return fmt.Appendf(nil, "%05d", 2*i) }
		for i := range 2000 {
			require.NoError(t, db.Set(key(i), make([]byte, 50), NoSync))
		}
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(n), 1))
				for range 300 {
					i := rng.IntN(1999)
					if n == 0 {
						require.NoError(t, db.Set(key(i), make([]byte, rng.IntN(500)), NoSync))
						continue
					}
					it, err := db.NewIter(&IterOptions{LowerBound: append(key(i), 0), UpperBound: key(i + 1)})
					require.NoError(t, err)
					require.False(t, it.First())
					require.False(t, it.Last())
					require.NoError(t, it.Close())
					it, err = db.NewIter(&IterOptions{LowerBound: key(i), UpperBound: append(key(i), 0)})
					require.NoError(t, err)
					require.True(t, it.Last())
					require.False(t, it.Prev())
					require.NoError(t, it.Close())
				}
			})
		}
		wg.Wait()
		require.NoError(t, db.Close())
	}
}
