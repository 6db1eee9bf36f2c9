package version

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/turns"
	"github.com/stretchr/testify/require"
)

// wide returns a version with so many tables in the last level, and the number after theirs.
func wide(t testing.TB, tables int) (*Version, uint64) {
	e := &manifest.Edit{}
	for i := range tables {
		e.Added = append(e.Added, wideTable(uint64(i+1), i))
	}
	v, err := (&Version{}).Apply(e)
	require.NoError(t, err)
	return v, uint64(tables + 1)
}

func wideTable(num uint64, i int) manifest.AddedTable {
	return manifest.AddedTable{Level: manifest.NumLevels - 1, Table: manifest.Table{Num: num, Size: 4 << 20,
		Entries: 1, Smallest: fmt.Appendf(nil, "user%08d", 10*i), Largest: fmt.Appendf(nil, "user%08d", 10*i+9)}}
}

// replacing returns an edit as a compaction makes it: a table of level 0 goes, and eleven
// neighbours of the last level are replaced.
func replacing(num uint64, at int) *manifest.Edit {
	e := &manifest.Edit{}
	for i := at; i < at+11; i++ {
		e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: manifest.NumLevels - 1, Num: uint64(i + 1)})
		e.Added = append(e.Added, wideTable(num+uint64(i-at), i))
	}
	return e
}

// BenchmarkEdit applies the edits of a flush and of a compaction to versions with many tables,
// and makes the results current.
func BenchmarkEdit(b *testing.B) {
	for _, tables := range []int{100, 1_000, 10_000, 100_000} {
		v, num := wide(b, tables)
		for kind, e := range map[string]*manifest.Edit{
			"flush":      {Added: []manifest.AddedTable{{Table: manifest.Table{Num: num, Entries: 1}}}},
			"compaction": replacing(num, tables/2),
		} {
			b.Run(fmt.Sprintf("%s/tables=%d", kind, tables), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					next, err := v.Apply(e)
					if err != nil {
						b.Fatal(err)
					}
					h := &History{}
					v.refs.Store(0)
					h.Install(v)
					h.Install(next)
					h.retire(v)
				}
			})
		}
	}
}

// BenchmarkFirstVersion makes the version of a store of 5,000 tables and 10,000 blob files that is opened. It reports
// the processor time.
func BenchmarkFirstVersion(b *testing.B) {
	const tables, blobs = 5_000, 10_000
	e := &manifest.Edit{}
	for i := range tables {
		e.Added = append(e.Added, wideTable(uint64(i+1), i))
	}
	refs := &e.Added[0].Table.Blobs
	for n := uint64(tables + 1); n <= tables+blobs; n++ {
		e.AddedBlobs = append(e.AddedBlobs, manifest.BlobFile{Num: n, ID: 1, Size: leastBlob + 1000, Records: 10})
		*refs = append(*refs, manifest.BlobRef{Num: n, Records: 6, Bytes: 600})
	}
	took := time.Duration(0)
	for b.Loop() {
		runtime.GC()
		s := NewManifestState()
		began := turns.ProcessorTime()
		require.NoError(b, s.Apply(e))
		_, err := s.Version(&Version{})
		took += turns.ProcessorTime() - began
		require.NoError(b, err)
	}
	b.ReportMetric(float64(took.Microseconds())/float64(b.N)/1000, "cpu-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFind looks for the table of a key in a run of many tables.
func BenchmarkFind(b *testing.B) {
	for _, tables := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("tables=%d", tables), func(b *testing.B) {
			v, _ := wide(b, tables)
			keys := make([][]byte, 1<<14)
			for i := range keys {
				keys[i] = fmt.Appendf(nil, "user%08d", rand.IntN(10*tables))
			}
			r, i, sum := v.Runs[0], 0, 0
			for b.Loop() {
				at, _ := r.Find(keys[i%len(keys)])
				sum += at
				i++
			}
			runtime.KeepAlive(sum)
		})
	}
}

// BenchmarkWrittenAfter finds the one table of many with writes after a transaction's snapshot, as each commit of a
// transaction does.
func BenchmarkWrittenAfter(b *testing.B) {
	for _, tables := range []int{100, 10_000} {
		b.Run(strconv.Itoa(tables), func(b *testing.B) {
			e := &manifest.Edit{}
			for i := range tables {
				a := wideTable(uint64(i+1), i)
				if a.Table.SmallestSeq, a.Table.LargestSeq = 1, 1; i == tables/2 {
					a.Table.LargestSeq = 3
				}
				e.Added = append(e.Added, a)
			}
			v, err := (&Version{}).Apply(e)
			require.NoError(b, err)
			for b.Loop() {
				if later := v.WrittenAfter(2); len(later) != 1 {
					b.Fatal(len(later))
				}
			}
		})
	}
}
