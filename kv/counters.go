package kv

import (
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/iterator"
)

// Counters of point lookups are striped like the references of a readState: a
// lookup adds to the lines of its own stripe, and Metrics sums them up. An
// outcome of a probe is one addition; what always holds together is derived.

type counter = atomic.Uint64

// levelCounters count the lookups and scans in one level.
type levelCounters struct {
	plainHits counter // filter maybe, key present, one block from the cache, answered
	outOfBounds,
	underTombstone,
	negatives,
	remembered,
	truePositives,
	falsePositives,
	unfiltered,
	outOfIndex,
	blocksFromCache,
	blocksFromDisk,
	leavesFromDisk,
	bytesFromDisk,
	bytesDecoded,
	hits counter

	scans scanCounters
}

// stripe is one stripe of counters.
type stripe struct {
	gets         counter
	memtableHits counter
	levels       [NumLevels]levelCounters
	apart        apartCounters
	_            [64]byte
}

// apartCounters count what lookups and iterators read of blob values.
type apartCounters struct {
	reads     counter // records that were read of blob files
	bytes     counter // that these take there
	cacheHits counter // values that were in the cache
}

// count counts a record that was read.
func (c *apartCounters) count(h blob.Handle) {
	c.reads.Add(1)
	c.bytes.Add(uint64(h.Length))
}

// apartReads returns the sums of all stripes: records that were read of blob files, their bytes there, and values that
// were in the cache.
func (c *dbCounters) apartReads() (reads, bytes, cacheHits uint64) {
	for i := range c.stripes {
		a := &c.stripes[i].apart
		reads, bytes, cacheHits = reads+a.reads.Load(), bytes+a.bytes.Load(), cacheHits+a.cacheHits.Load()
	}
	return reads, bytes, cacheHits
}

// dbCounters are the counters of a store.
type dbCounters struct {
	stripes [numStripes]stripe

	prefix iterator.PrefixStats

	walBytes                              counter
	txCommits, txConflicts                counter
	flushes, flushBytes                   counter
	compactions, moves                    counter
	compactionRead, compactionWritten     counter // bytes
	operandsMerged, mergeFailures         counter
	expiredDropped                        counter
	stalls, stallNanos                    counter
	slowdowns, slowdownNanos              counter
	ingests, ingestedFiles, ingestedBytes counter
	iterators                             counter
	failures, resumes, resumeAttempts     counter
	failedCompactions                     counter
	recoveryDrops, recoveryDroppedBytes   counter

	// Of blob files: bytes of those that were written with new values, bytes of records that were copied
	// from one to another, and compactions that were picked to collect garbage.
	blobWritten, blobRelocated, collections counter
}
