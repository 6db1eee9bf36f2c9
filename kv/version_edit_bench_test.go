package kv

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/stretchr/testify/require"
)

// BenchmarkEdit makes an edit, as a flush does, durable and current in a store with many
// tables, in memory, and looks for a compaction. The tables are not there: nobody reads them.
func BenchmarkEdit(b *testing.B) {
	for _, tables := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("tables=%d", tables), func(b *testing.B) {
			db := openMem(b, nil)
			e := &manifest.Edit{}
			for i := range tables {
				e.Added = append(e.Added, manifest.AddedTable{Level: lastLevel, Table: manifest.Table{
					Num: db.newFileNum(), Size: 4 << 20, Entries: 1, FilterBytes: 1,
					Smallest: fmt.Appendf(nil, "user%08d", 10*i), Largest: fmt.Appendf(nil, "user%08d", 10*i+9)}})
			}
			edit := func(e *manifest.Edit) {
				require.NoError(b, db.applyEdit(func() *manifest.Edit { return e }, func() {}))
			}
			edit(e)
			num := db.newFileNum()
			come := &manifest.Edit{Added: []manifest.AddedTable{{Table: manifest.Table{Num: num, Size: 1, Entries: 1,
				Smallest: []byte("a"), Largest: []byte("z")}}}}
			gone := &manifest.Edit{Deleted: []manifest.DeletedTable{{Num: num}}}
			b.ReportAllocs()
			for b.Loop() {
				edit(come)
				db.scheduleCompactions()
				edit(gone)
				db.scheduleCompactions()
			}
		})
	}
}
