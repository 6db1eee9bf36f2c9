package kv

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// An ownFilter is a filter of an application: another under a name of its own.
type ownFilter struct{ filterpolicy.Policy }

func newOwnFilter(t *testing.T) ownFilter {
	p, err := filterpolicy.Parse("bloom:10")
	require.NoError(t, err)
	return ownFilter{p}
}

func (ownFilter) Name() string   { return "own" }
func (ownFilter) String() string { return "own:10" }

func (o ownFilter) Decode(data []byte) (filterpolicy.Filter, error) {
	return filterpolicy.Decode(o.Policy.Name(), data)
}

// A store reads filters of an application's own with its options, and without them as if
// there were none. Neither is damage, also not in files that are taken in.
func TestFiltersOfAnApplication(t *testing.T) {
	own := newOwnFilter(t)
	dir := t.TempDir()
	for _, filter := range []filterpolicy.Policy{own, nil} {
		db := openDir(t, dir, &Options{Filter: filter})
		file := ingestFile(t, vfs.OS, filepath.Join(t.TempDir(), "f"), &sstable.WriterOptions{Filter: own}, "a=1",
			"c=3")
		require.NoError(t, db.Ingest(t.Context(), []string{file}, nil))
		requireContents(t, storetest.Model{"a": "1", "c": "3"}, db)
		_, err := db.Get([]byte("b"))
		require.ErrorIs(t, err, ErrNotFound)
		m := db.Metrics()
		negatives := uint64(0)
		for _, l := range m.Levels {
			negatives += l.Lookup.FilterNegatives
		}
		require.Equal(t, filter != nil, negatives > 0)
		require.Equal(t, filter == nil, m.UnusableFilters > 0)
		require.NoError(t, db.Close())
	}
}

// Filters of an application keep their size under a budget, as their range filters do, and are not rewritten for it.
func TestFiltersOfAnApplicationUnderABudget(t *testing.T) {
	for _, filter := range []filterpolicy.Policy{newOwnFilter(t), renamedFilter{newOwnFilter(t).Policy}} {
		dir := t.TempDir()
		for _, budget := range []int64{0, 64} {
			db := openDir(t, dir, &Options{Filter: filter, FilterBudget: budget, RangeFilter: exactranges.Policy{}})
			stale, err := db.StaleFilters()
			require.NoError(t, err)
			require.Equal(t, FilterCompaction{}, stale)
			require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
			require.NoError(t, db.Set([]byte("c"), []byte("3"), nil))
			require.NoError(t, db.Flush(t.Context()))
			requireContents(t, storetest.Model{"a": "1", "c": "3"}, db)
			_, err = db.Get([]byte("b"))
			require.ErrorIs(t, err, ErrNotFound)
			young := db.Metrics().Levels[0]
			require.NotZero(t, young.Lookup.FilterNegatives, filter)
			require.Zero(t, young.Lookup.Unfiltered, filter)
			require.NotZero(t, young.RangeFilterBytes)
			stale, err = db.StaleFilters()
			require.NoError(t, err)
			require.Equal(t, FilterCompaction{}, stale)
			require.NoError(t, db.Close())
		}
	}
}

// A policy whose filters could not be decoded again is refused.
func TestFiltersWithoutADecoderAreRefused(t *testing.T) {
	type writesOnly struct{ filterpolicy.Policy } // has no Decode
	type writesOnlyRanges struct{ filterpolicy.RangePolicy }
	for want, o := range map[string]*Options{
		`Filter is of the family "own"`:        {Filter: writesOnly{newOwnFilter(t)}},
		`RangeFilter is of the family "exact"`: {RangeFilter: writesOnlyRanges{exactranges.Policy{}}},
	} {
		_, err := Open(filepath.Join(t.TempDir(), "db"), o)
		require.ErrorIs(t, err, ErrInvalidOptions)
		require.ErrorContains(t, err, want)
	}
}
