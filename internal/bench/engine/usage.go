package engine

// A Meter is a store that knows what it has written and what it keeps in memory.
type Meter interface {
	// Usage returns figures since the store was opened, and of now.
	Usage() Usage
}

// Usage is what a store has cost so far, in bytes.
type Usage struct {
	Logged       Count `json:"logged_bytes"`    // written to logs since it was opened
	Flushed      Count `json:"flushed_bytes"`   // written by flushes
	Compacted    Count `json:"compacted_bytes"` // written by compactions
	FilterMemory Count `json:"filter_memory_bytes"`
	IndexMemory  Count `json:"index_memory_bytes"`
	CacheMemory  Count `json:"cache_memory_bytes"` // blocks in the cache
}

// UnknownUsage is the usage of a store that is no Meter.
func UnknownUsage() Usage {
	return Usage{Unknown, Unknown, Unknown, Unknown, Unknown, Unknown}
}

// Written returns the bytes of sorted files written, by flushes and compactions.
func (u Usage) Written() Count { return u.Flushed.Plus(u.Compacted) }
