package version

// ReferringTo returns the tables that refer to any of some blob files, by run, the newest first, and then in key
// order. It takes the time of a look at all references.
func (v *Version) ReferringTo(blobs map[uint64]bool) (tables []*Table) {
	for _, r := range v.Runs {
		if r.Sums().BlobBytes == 0 {
			continue
		}
		for t := range r.Where(func(s *Sums) bool { return s.BlobBytes > 0 }) {
			for _, ref := range t.Blobs {
				if blobs[ref.Num] {
					tables = append(tables, t)
					break
				}
			}
		}
	}
	return tables
}
