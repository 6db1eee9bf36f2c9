package metrics

// ReadAmplification returns how many blocks a lookup asks for, on average over Gets. Blocks are data blocks of sorted
// files, from the cache or the disk, and parts of indexes that were not in memory. Lookups that memtables answer or
// filters rule out ask for none. It is 0 if there was no lookup. (How many files a lookup had to be searched for in,
// after bounds and filters, is Lookup().IndexLookups / Gets.)
func (m *Store) ReadAmplification() float64 {
	c := m.Lookup()
	return ratio(c.BlocksFromCache+c.BlocksFromDisk+c.IndexLeavesFromDisk, m.Gets)
}

// WriteAmplification returns how many bytes commits, flushes and compactions wrote to sorted files and blob files for
// each byte that the program wrote in batches and by SetReader. A file that was ingested counts once as written by the
// program, and once as written. The log is not counted: it adds 1, less what commits wrote to blob files. Bytes that
// are still in memtables are not flushed yet, and those that were there at Open were not written since. Over an
// interval of many flushes neither matters. It is 0 if nothing was written.
func (m *Store) WriteAmplification() float64 {
	return ratio(m.Blobs.Committed+m.FlushBytes+m.CompactionWrittenBytes+m.IngestedBytes, m.WriteBytes+m.IngestedBytes)
}

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
