package kv

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// Once files have the filters of the options there is nothing left to do, whatever shares a budget gave them before.
func TestSharesOfABudgetAreRewrittenOnce(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of files; TestFiltersAreRewrittenBesideWriters has its goroutines")
	for n, spec := range []string{"blocked:16", "bloom:16", "ribbon:16", "cuckoo:16"} {
		for i, budget := range []int64{4000, 8000, 16_000} {
			if !scale.Long() && i != n%3 {
				continue // each policy with one budget
			}
			t.Run(fmt.Sprint(spec, " ", budget), func(t *testing.T) {
				dir := t.TempDir()
				o := &Options{MemtableSize: 64 << 10, TargetFileSize: 16 << 10, BaseLevelSize: 32 << 10,
					L0CompactionThreshold: 8, Filter: policyOf(t, spec)}
				db, err := Open(dir, o)
				require.NoError(t, err)
				want := fillRuns(t, db)
				require.NoError(t, db.Close())
				o.FilterBudget = budget
				db, err = Open(dir, o)
				require.NoError(t, err)
				first, err := db.CompactFilters(t.Context())
				require.NoError(t, err)
				second, err := db.CompactFilters(t.Context())
				require.NoError(t, err)
				require.Equal(t, FilterCompaction{}, second, "after %v: %v", first, filtersOf(t, db))
				requireHolds(t, db, want)
				require.NoError(t, db.Close())
			})
		}
	}
}

// A filter that its builder declined is not built again because its share of a budget has changed by a hair.
func TestDeclinedSharesOfABudgetAreNotRewritten(t *testing.T) {
	t.Parallel()
	o := &Options{MemtableSize: 64 << 10, TargetFileSize: 16 << 10, BaseLevelSize: 32 << 10,
		Prefix: mustPrefix(t, "fixed:40"), PrefixOnly: true, FilterBudget: 8000}
	db, err := Open(t.TempDir(), o)
	require.NoError(t, err)
	fillRuns(t, db)
	_, err = db.CompactFilters(t.Context())
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("key-1"), nil, nil))
	require.NoError(t, db.Set([]byte("key-2"), nil, nil))
	require.NoError(t, db.Flush(t.Context()))
	settleStore(t, db)
	stale, err := db.StaleFilters()
	require.NoError(t, err)
	require.Equal(t, FilterCompaction{}, stale, "%v", filtersOf(t, db))
	require.NoError(t, db.Close())
}

// A file of which a block is damaged keeps its filter, and the others get theirs.
func TestFiltersAreRewrittenAroundDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &Options{MemtableSize: 64 << 10, TargetFileSize: 16 << 10, L0CompactionThreshold: 100}
	db, err := Open(dir, o)
	require.NoError(t, err)
	fillRuns(t, db)
	files := filtersFiles(db)
	require.Greater(t, len(files), 2)
	require.NoError(t, db.Close())
	rewrite(t, filepath.Join(dir, files[1]), flip(20))
	o.Filter = policyOf(t, "ribbon:8")
	db, err = Open(dir, o)
	require.NoError(t, err)
	done, err := db.CompactFilters(t.Context())
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, files[1])
	require.Equal(t, len(files)-1, done.Files)
	require.Contains(t, filtersFiles(db), files[1])
	done, err = db.CompactFilters(t.Context())
	require.NoError(t, err, "the damage is known")
	require.Equal(t, FilterCompaction{}, done)
	require.NoError(t, db.Close())
}
