package metrics

// Latency has histograms of how long operations took, those that failed included. They
// are empty unless Options.LatencyHistograms is set.
type Latency struct {
	// Get is of Get, AppendGet, Has, GetSize and Expiry, of snapshots and transactions too: the part
	// that asks the store. One in 16 is timed. Keys of MultiGet are not in it.
	Get Histogram

	// Commit is of all writes: batches, transactions and single ones, from the call to the return, with
	// whatever they waited for. One in 16 is timed.
	Commit Histogram

	Sync  Histogram // of the log, each for one writer or many: WALSyncs
	Flush Histogram // of memtables to a file: Flushes
	Stall Histogram // waits of writes for background work: Stalls and Slowdowns
}

// Sub returns what was timed since prev.
func (m Latency) Sub(prev Latency) Latency {
	return Latency{
		Get: m.Get.Sub(prev.Get), Commit: m.Commit.Sub(prev.Commit), Sync: m.Sync.Sub(prev.Sync),
		Flush: m.Flush.Sub(prev.Flush), Stall: m.Stall.Sub(prev.Stall),
	}
}
