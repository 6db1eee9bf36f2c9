package metrics

// Budget says what a kv.MemoryBudget is used for, in bytes.
type Budget struct {
	Limit         int64
	Stores        int   // that are open
	Memtables     int64 // in memory that was taken for them, with what is kept for the next ones
	Blocks        int64 // in the cache
	Filters       int64
	Indexes       int64
	Remembered    int64 // for false positives
	ReadAhead     int64 // by iterators, of stores in object stores
	Compactions   int   // threads that compact, now
	MaxCompaction int   // such threads at the most
	Waiting       int   // stores, and calls of Compact, that wait for a thread
	Asked         int   // stores that were asked to give memory back, and have not yet
}

// Bytes returns the sum of all parts.
func (u Budget) Bytes() int64 {
	return u.Memtables + u.Blocks + u.Filters + u.Indexes + u.Remembered + u.ReadAhead
}
