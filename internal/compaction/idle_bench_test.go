package compaction

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
)

// The choice of a job in an idle store of 4,000 files, with the store's mutex held. The limit: where no files share
// keys, a search in the levels below for each file of the upper one; else a piece of 256 MiB.
func BenchmarkPickOfAnIdleStore(b *testing.B) {
	const upper, last = 1000, 3000
	for _, c := range []struct {
		name  string
		apart int
	}{{"shared", 0}, {"disjoint", 1_000_000}} {
		var tables []manifest.AddedTable
		for i := range upper {
			tables = append(tables, table(5, fmt.Sprintf("%08d", 3*i), fmt.Sprintf("%08d", 3*i+2), mib))
		}
		for i := range last {
			key := fmt.Sprintf("%08d", c.apart+i)
			tables = append(tables, table(lastLevel, key, key, 32*mib))
		}
		in := input(versionOf(b, tables...))
		idle := unbounded
		in.Idle = &idle
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				Pick(in)
			}
		})
	}
}
