package lookuptrace

// Scans returns the number of scans that were read.
func (t *Reader) Scans() uint64 { return t.scans }

// Next is NextRecord that passes over scans.
func (t *Reader) Next() (Lookup, error) {
	for {
		if l, s, err := t.NextRecord(); err != nil || s == nil {
			return l, err
		}
	}
}
