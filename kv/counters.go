package kv

import (
	"sync/atomic"

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
	_            [64]byte
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
	// from one to another, bytes read of values, and compactions that were picked to collect garbage.
	blobWritten, blobRelocated, blobRead, collections counter
}
