package kv

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// filtersOf returns how many files have each filter.
func filtersOf(t *testing.T, db *DB) map[string]int {
	t.Helper()
	s := db.acquire(0)
	require.NotNil(t, s)
	defer s.release(0)
	all := map[string]int{}
	for _, run := range s.version.Runs {
		for table := range run.All() {
			r, err := table.Open(&db.tables)
			require.NoError(t, err)
			all[r.Properties().FilterPolicy]++
		}
	}
	return all
}

// places returns the levels and runs of a store, with their keys, as text.
func places(db *DB) (all []string) {
	s := db.acquire(0)
	defer s.release(0)
	for _, run := range s.version.Runs {
		all = append(all, fmt.Sprintf("L%d %q %d", run.Level, run.At(0).Smallest, run.Totals().Entries))
	}
	return all
}

// fillRuns makes runs in level 0 and below it, with newer versions, tombstones and a range tombstone in the young
// ones, and returns what is live.
func fillRuns(t *testing.T, db *DB) map[string]string {
	t.Helper()
	want := map[string]string{}
	for round := range 6 {
		for i := range 3000 {
			key, value := fmt.Sprintf("key-%05d", (i*7+round*1000)%9000), fmt.Sprint(round, i)
			if i%11 == 3 && round > 3 {
				storetest.Fine(t, db.Delete([]byte(key), NoSync))
				delete(want, key)
				continue
			}
			storetest.Fine(t, db.Set([]byte(key), []byte(value), NoSync))
			want[key] = value
		}
		if round == 4 {
			storetest.Fine(t, db.DeleteRange([]byte("key-02000"), []byte("key-02100"), NoSync))
			for i := 2000; i < 2100; i++ {
				delete(want, fmt.Sprintf("key-%05d", i))
			}
		}
		storetest.Fine(t, db.Flush(t.Context()))
		if round == 2 {
			settleStore(t, db)
		}
	}
	settleStore(t, db)
	for i := range 50 { // a run of level 0, above all others
		key, value := fmt.Sprintf("key-%05d", 150*i), fmt.Sprint("young", i)
		storetest.Fine(t, db.Set([]byte(key), []byte(value), NoSync))
		want[key] = value
	}
	require.NoError(t, db.Flush(t.Context()))
	settleStore(t, db)
	return want
}

func requireHolds(t *testing.T, db *DB, want map[string]string) {
	t.Helper()
	n := 0
	var err error
	for key, value := range db.All(nil, &err) {
		require.Equal(t, want[string(key)], string(value), "%s", key)
		got, err := db.Get(key)
		storetest.Fine(t, err)
		require.Equal(t, string(value), string(got))
		n++
	}
	require.NoError(t, err)
	require.Len(t, want, n)
}

func policyOf(t *testing.T, spec string) filterpolicy.Policy {
	t.Helper()
	p, err := filterpolicy.Parse(spec)
	require.NoError(t, err)
	return p
}

// Files get the filters that new files have where they are: the order of runs, which is that of versions, stays.
func TestFiltersAreRewrittenInPlace(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of files; TestFiltersAreRewrittenBesideWriters has its goroutines")
	for name, o := range map[string]*Options{
		"leveled": {}, "tiered": {Compaction: Tiered}, "lazy-leveled": {Compaction: LazyLeveled},
		"level 0": {L0CompactionThreshold: 100},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o.MemtableSize, o.TargetFileSize, o.BaseLevelSize = 64<<10, 16<<10, 32<<10
			if o.L0CompactionThreshold == 0 {
				o.L0CompactionThreshold = 3
			}
			db, err := Open(dir, o)
			require.NoError(t, err)
			want := fillRuns(t, db)
			stale, err := db.StaleFilters()
			require.NoError(t, err)
			require.Equal(t, FilterCompaction{}, stale)
			done, err := db.CompactFilters(t.Context())
			require.NoError(t, err)
			require.Equal(t, FilterCompaction{}, done)
			before := places(db)
			require.True(t, len(before) > 6 || name != "level 0")
			require.NoError(t, db.Close())

			o.Filter = policyOf(t, "ribbon:8")
			db, err = Open(dir, o)
			require.NoError(t, err)
			stale, err = db.StaleFilters()
			require.NoError(t, err)
			files, bytes := 0, int64(0)
			for _, l := range db.Metrics().Levels {
				files, bytes = files+l.Files, bytes+l.Bytes
			}
			require.Equal(t, FilterCompaction{files, bytes}, stale)
			written := db.Metrics().CompactionWrittenBytes
			done, err = db.CompactFilters(t.Context())
			require.NoError(t, err)
			require.Equal(t, stale, done)
			require.InEpsilon(t, float64(bytes), float64(db.Metrics().CompactionWrittenBytes-written), 0.2)
			got := filtersOf(t, db)
			require.Len(t, got, 1, "%v", got)
			require.Positive(t, got["ribbon:8"])
			require.Len(t, places(db), len(before))
			requireHolds(t, db, want)
			stale, err = db.StaleFilters()
			require.NoError(t, err)
			require.Equal(t, FilterCompaction{}, stale)
			require.NoError(t, db.Close())
			db, err = Open(dir, o)
			require.NoError(t, err)
			requireHolds(t, db, want)
			require.NoError(t, db.Close())
			require.NoError(t, Verify(t.Context(), dir, io.Discard))
		})
	}
}

// What was rewritten before somebody gave up stays, and the next call does the rest.
func TestRewritingFiltersGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{MemtableSize: 64 << 10, TargetFileSize: 16 << 10}
	db, err := Open(dir, o)
	require.NoError(t, err)
	want := fillRuns(t, db)
	require.NoError(t, db.Close())
	ctx, cancel := context.WithCancel(t.Context())
	o.Filter = policyOf(t, "none")
	compacted := 0
	o.Events.Compacted = func(CompactionInfo) {
		if compacted++; compacted == 2 {
			cancel()
		}
	}
	db, err = Open(dir, o)
	require.NoError(t, err)
	all, err := db.StaleFilters()
	require.NoError(t, err)
	first, err := db.CompactFilters(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, first.Files)
	rest, err := db.StaleFilters()
	require.NoError(t, err)
	require.Equal(t, FilterCompaction{all.Files - first.Files, all.Bytes - first.Bytes}, rest)
	second, err := db.CompactFilters(t.Context())
	require.NoError(t, err)
	require.Equal(t, rest, second)
	require.Equal(t, map[string]int{"": len(filtersFiles(db))}, filtersOf(t, db))
	requireHolds(t, db, want)
	require.NoError(t, db.Close())
	_, err = db.CompactFilters(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	_, err = db.StaleFilters()
	require.ErrorIs(t, err, ErrClosed)
	db, err = Open(dir, &Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = db.CompactFilters(t.Context())
	require.ErrorIs(t, err, ErrReadOnly)
	require.NoError(t, db.Close())
}

// filtersFiles returns the files of a store.
func filtersFiles(db *DB) (all []string) {
	s := db.acquire(0)
	defer s.release(0)
	for _, run := range s.version.Runs {
		for t := range run.All() {
			all = append(all, t.Name())
		}
	}
	return all
}

// Compact gives files of the last level other filters too, and leaves alone what has the right ones.
func TestCompactCarriesAnotherFilterOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, o := range []*Options{{}, {Filter: policyOf(t, "ribbon:8")}, {Filter: policyOf(t, "ribbon:6")},
		{Prefix: mustPrefix(t, "fixed:4")}, {FilterBudget: 2000}, {Filter: policyOf(t, "none")}} {
		o.MemtableSize, o.TargetFileSize = 64<<10, 16<<10
		db, err := Open(dir, o)
		require.NoError(t, err)
		if len(places(db)) == 0 {
			fillRuns(t, db)
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.Positive(t, db.Metrics().CompactionWrittenBytes, "since it was opened, in the background too")
		stale, err := db.StaleFilters()
		require.NoError(t, err)
		require.Equal(t, FilterCompaction{}, stale, "%v", filtersOf(t, db))
		written := db.Metrics().CompactionWrittenBytes
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.Equal(t, written, db.Metrics().CompactionWrittenBytes)
		require.NoError(t, db.Close())
	}
}

func mustPrefix(t *testing.T, spec string) filterpolicy.Prefix {
	t.Helper()
	p, err := filterpolicy.ParsePrefix(spec)
	require.NoError(t, err)
	return p
}

// Filters of two families with a salt have one name on disk.
func TestFamiliesWithASaltDiffer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, spec := range []string{"salted:blocked:10", "salted:quotient:7", "salted:blocked:8", "blocked:10"} {
		db := openDir(t, dir, &Options{Filter: mustFilter(spec), FilterBudget: 12 << 10})
		if i == 0 {
			fillRuns(t, db)
		}
		_, err := db.CompactFilters(t.Context())
		require.NoError(t, err)
		family := spec[:strings.LastIndexByte(spec, ':')+1]
		for filter := range filtersOf(t, db) {
			require.True(t, strings.HasPrefix(filter, family), "%s, of %s", filter, spec)
		}
		stale, err := db.StaleFilters()
		require.NoError(t, err)
		require.Equal(t, FilterCompaction{}, stale, "%v", filtersOf(t, db))
		require.NoError(t, db.Close())
	}
}

// While files are rewritten, others write and compactions run.
func TestFiltersAreRewrittenBesideWriters(t *testing.T) {
	t.Parallel()
	for style := range CompactionStyle(scale.Fewer(int(numCompactions), 1)) {
		dir := t.TempDir()
		o := &Options{Compaction: style, MemtableSize: 64 << 10, TargetFileSize: 16 << 10, BaseLevelSize: 32 << 10,
			L0CompactionThreshold: 2}
		db, err := Open(dir, o)
		require.NoError(t, err)
		want := fillRuns(t, db)
		require.NoError(t, db.Close())
		o.Filter = policyOf(t, "bloom:7")
		db, err = Open(dir, o)
		require.NoError(t, err)
		rewritten := make(chan error)
		go func() {
			_, err := db.CompactFilters(context.Background())
			rewritten <- err
		}()
		for i := range 20_000 / storetest.RaceFactor {
			key, value := fmt.Sprintf("key-%05d", i*13%9500), fmt.Sprint("new", i)
			require.NoError(t, db.Set([]byte(key), []byte(value), NoSync))
			want[key] = value
		}
		require.NoError(t, <-rewritten)
		_, err = db.CompactFilters(t.Context())
		require.NoError(t, err)
		requireHolds(t, db, want)
		require.NoError(t, db.Close())
	}
}

// What is stale in a view may be asked while the view is refreshed.
func TestStaleFiltersOfAViewBesideRefresh(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	w := openDir(t, "db", &Options{harness: harness.Harness{FS: fsys}, Merger: Int64Add})
	view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: fsys}})
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 50 {
			_ = w.Merge([]byte("k"), AppendInt64(nil, int64(i)), nil)
			_ = view.Refresh(t.Context())
		}
	})
	for range 50 {
		_, err := view.StaleFilters()
		require.NoError(t, err)
		_, err = view.Backup(t.Context(), io.Discard, BackupMark{})
		require.NoError(t, err)
	}
	wg.Wait()
	require.NoError(t, view.Close())
	require.NoError(t, w.Close())
}
