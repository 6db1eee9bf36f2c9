// Package counters counts what a store does, for metrics.Store. Many goroutines add at the same time, without a lock.
//
// Counters of lookups and scans are striped: a goroutine adds to the cache lines of its own stripe, and AddTo sums them
// up. An outcome of a probe is one addition; what always holds together is derived.
package counters

import (
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv/metrics"
)

type counter = atomic.Uint64

// A Stripe has the counters of lookups and scans of the goroutines of one stripe: see OwnStripe.
type Stripe struct {
	Gets         counter
	MemtableHits counter
	Levels       [manifest.NumLevels]Level
	Blobs        Blobs
	_            [64]byte
}

// Blobs count what lookups and iterators read of blob values.
type Blobs struct {
	Reads     counter // records that were read of blob files
	Bytes     counter // that these take there
	CacheHits counter // values that were in the cache
}

// Count counts a record that was read.
func (c *Blobs) Count(h blob.Handle) {
	c.Reads.Add(1)
	c.Bytes.Add(uint64(h.Length))
}

// A Store has the counters of a store, from its Open.
type Store struct {
	Stripes   [NumStripes]Stripe
	Latencies *Latencies // nil: nothing is timed

	Prefix Prefix

	WALBytes                              counter
	TxCommits, TxConflicts                counter
	Flushes, FlushBytes                   counter
	Compactions, Moves                    counter
	CompactionRead, CompactionWritten     counter // bytes
	IdleCompactions                       counter // of the compactions, those of an idle store
	IdleCompactionWritten                 counter // bytes
	OperandsMerged, MergeFailures         counter
	ExpiredDropped                        counter
	Stalls, StallNanos                    counter
	Slowdowns, SlowdownNanos              counter
	Ingests, IngestedFiles, IngestedBytes counter
	Iterators                             counter
	Failures, Resumes, ResumeAttempts     counter
	FailedCompactions                     counter
	RecoveryDrops, RecoveryDroppedBytes   counter

	// Of blob files: bytes of those that were written with new values, bytes of records that were copied
	// from one to another, and compactions that were picked for blob GC.
	BlobWritten, BlobRelocated, BlobGCs counter
}

// Gets returns the number of lookups.
func (c *Store) Gets() (sum uint64) {
	for i := range c.Stripes {
		sum += c.Stripes[i].Gets.Load()
	}
	return sum
}

// BlobReads returns the sums of all stripes: records that were read of blob files, their bytes there, and values that
// were in the cache.
func (c *Store) BlobReads() (reads, bytes, cacheHits uint64) {
	for i := range c.Stripes {
		b := &c.Stripes[i].Blobs
		reads, bytes, cacheHits = reads+b.Reads.Load(), bytes+b.Bytes.Load(), cacheHits+b.CacheHits.Load()
	}
	return reads, bytes, cacheHits
}

// Above returns the sums of lookups and scans in the levels above one.
func (c *Store) Above(level int) (lookups metrics.Lookups, scans metrics.Scans) {
	for i := range c.Stripes {
		for n := range level {
			lookups = lookups.Add(c.Stripes[i].Levels[n].sum())
			scans = scans.Add(c.Stripes[i].Levels[n].Scans.sum())
		}
	}
	return lookups, scans
}

// AddTo sets the figures of m that c counts.
func (c *Store) AddTo(m *metrics.Store) {
	m.Gets = c.Gets()
	for i := range c.Stripes {
		s := &c.Stripes[i]
		m.MemtableHits += s.MemtableHits.Load()
		for n := range s.Levels {
			m.Levels[n].Lookup = m.Levels[n].Lookup.Add(s.Levels[n].sum())
			m.Levels[n].Scan = m.Levels[n].Scan.Add(s.Levels[n].Scans.sum())
		}
	}
	m.Latency = c.Latencies.metrics()
	m.PrefixChecks, m.PrefixNegatives = c.Prefix.Checks.Load(), c.Prefix.Negatives.Load()
	m.WALBytes = c.WALBytes.Load()
	m.TxCommits, m.TxConflicts = c.TxCommits.Load(), c.TxConflicts.Load()
	m.Flushes, m.FlushBytes = c.Flushes.Load(), c.FlushBytes.Load()
	m.Compactions, m.Moves = c.Compactions.Load(), c.Moves.Load()
	m.IdleCompactions, m.IdleCompactionBytes = c.IdleCompactions.Load(), c.IdleCompactionWritten.Load()
	m.CompactionReadBytes, m.CompactionWrittenBytes = c.CompactionRead.Load(), c.CompactionWritten.Load()
	m.OperandsMerged, m.MergeFailures = c.OperandsMerged.Load(), c.MergeFailures.Load()
	m.ExpiredDropped = c.ExpiredDropped.Load()
	m.Stalls, m.StallTime = c.Stalls.Load(), time.Duration(c.StallNanos.Load())
	m.Slowdowns, m.SlowdownTime = c.Slowdowns.Load(), time.Duration(c.SlowdownNanos.Load())
	m.Ingests, m.IngestedFiles, m.IngestedBytes = c.Ingests.Load(), c.IngestedFiles.Load(), c.IngestedBytes.Load()
	m.Failures, m.ResumeAttempts, m.Resumes = c.Failures.Load(), c.ResumeAttempts.Load(), c.Resumes.Load()
	m.FailedCompactions = c.FailedCompactions.Load()
	m.RecoveryDrops, m.RecoveryDroppedBytes = c.RecoveryDrops.Load(), c.RecoveryDroppedBytes.Load()

	b := &m.Blobs
	b.Relocated = c.BlobRelocated.Load()
	b.Written = c.BlobWritten.Load()
	b.Reads, b.Read, b.CacheHits = c.BlobReads()
	b.GCs = c.BlobGCs.Load()
}
