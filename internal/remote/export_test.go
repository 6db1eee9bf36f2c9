package remote

// TableMetrics count what Tables did since they were made.
type TableMetrics struct {
	Reads      int64 // of ranges, in the store, with those that failed
	Retries    int64 // of reads, uploads and removals
	Rereads    int64 // of what was damaged
	FreshReads int64 // reads that needed no request, as what they read had just been written
	Uploads    int64 // that succeeded
}

// Metrics returns the metrics.
func (t *Tables) Metrics() TableMetrics {
	s := &t.stats
	return TableMetrics{Reads: s.reads.Load(), Retries: s.retries.Load(), Rereads: s.rereads.Load(),
		FreshReads: s.freshReads.Load(), Uploads: s.uploads.Load()}
}
