package version

import (
	"slices"

	"github.com/siftkv/siftkv/internal/manifest"
)

// RefersTo reports whether the table has values in any of some blob files.
func (t *Table) RefersTo(blobs map[uint64]bool) bool {
	return slices.ContainsFunc(t.Blobs, func(r manifest.BlobRef) bool { return blobs[r.Num] })
}

// ReferringTo returns the tables that refer to any of some blob files, by run, the newest first, and then in key
// order. It takes the time of a look at all references.
func (v *Version) ReferringTo(blobs map[uint64]bool) (tables []*Table) {
	for _, r := range v.Runs {
		if r.Sums().BlobBytes == 0 {
			continue
		}
		for t := range r.Where(func(s *Sums) bool { return s.BlobBytes > 0 }) {
			if t.RefersTo(blobs) {
				tables = append(tables, t)
			}
		}
	}
	return tables
}
