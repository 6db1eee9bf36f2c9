package version

import (
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/stretchr/testify/require"
)

// A table that comes to another run of its level is there still: a view that is brought
// up to date takes it over with its new run.
func TestAManifestStateSeesThatARunChanged(t *testing.T) {
	table := func(num uint64, lo, hi string) manifest.Table {
		return manifest.Table{Num: num, Smallest: []byte(lo), Largest: []byte(hi)}
	}
	s := NewManifestState()
	require.NoError(t, s.Apply(&manifest.Edit{Added: []manifest.AddedTable{
		{Level: 6, Run: 2, Table: table(1, "a", "c")}, {Level: 6, Run: 1, Table: table(2, "b", "d")},
		{Level: 6, Table: table(3, "x", "z")},
	}}))
	v, err := s.Version(&Version{})
	require.NoError(t, err)
	require.Len(t, v.Runs, 3)
	same, err := s.Version(v)
	require.NoError(t, err)
	require.Same(t, v, same)

	require.NoError(t, s.Apply(&manifest.Edit{
		Deleted: []manifest.DeletedTable{{Level: 6, Num: 3}},
		Added:   []manifest.AddedTable{{Level: 6, Run: 2, Table: table(3, "x", "z")}},
	}))
	next, err := s.Version(v)
	require.NoError(t, err)
	require.Len(t, next.Runs, 2)
	require.Same(t, v.Runs[2].At(0), next.Runs[0].At(1))
}
