package version

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/stretchr/testify/require"
)

// BenchmarkApply adds a table to level 0 of a version with many tables in the last level.
func BenchmarkApply(b *testing.B) {
	e := &manifest.Edit{}
	for i := range uint64(10_000) {
		key := fmt.Appendf(nil, "%08d", i)
		e.Added = append(e.Added, manifest.AddedTable{Level: manifest.NumLevels - 1,
			Table: manifest.Table{Num: i + 1, Entries: 1, Smallest: key, Largest: key}})
	}
	v, err := (&Version{}).Apply(e)
	require.NoError(b, err)
	flushed := &manifest.Edit{Added: []manifest.AddedTable{{Table: manifest.Table{Num: 20_000, Entries: 1}}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Apply(flushed); err != nil {
			b.Fatal(err)
		}
	}
}
