package kv

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// BenchmarkLaterTables finds the one table of many that has writes after a transaction's
// snapshot, as each commit of a transaction does.
func BenchmarkLaterTables(b *testing.B) {
	for _, tables := range []int{100, 10_000} {
		b.Run(strconv.Itoa(tables), func(b *testing.B) {
			e := &manifest.Edit{}
			for i := range tables {
				t := manifest.Table{Num: uint64(i + 1), Size: 1, Entries: 1, Smallest: tombKey(i), Largest: tombKey(i)}
				if t.SmallestSeq, t.LargestSeq = 1, 1; i == tables/2 {
					t.LargestSeq = 3
				}
				e.Added = append(e.Added, manifest.AddedTable{Level: lastLevel, Table: t})
			}
			v, err := (&version.Version{}).Apply(e)
			require.NoError(b, err)
			db := openMem(b, nil)
			for b.Loop() {
				if l := db.later(&readState{version: v}, 2); len(l.tables) != 1 {
					b.Fatal(len(l.tables))
				}
			}
		})
	}
}
