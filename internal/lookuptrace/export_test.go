package lookuptrace

// Scans returns the number of scans that were read.
func (t *Reader) Scans() uint64 { return t.scans }
