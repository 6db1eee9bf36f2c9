package compaction

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/version"
)

// An idle store merges runs that only make reads dearer. Nothing is due in it, but level 0 has a few runs, and there
// are levels above the last: scans read a file of each, and lookups of absent keys ask the filter of each.
//
// A job merges runs only where that leaves one run less, so idle jobs come to an end. Level 0 goes to the base level
// as a whole. The levels below it go to the last one piece by piece: a piece takes little space and is soon given up.
//
// What such jobs write, level 0 aside, is paid for by flushes or by reads. A store may write as many bytes as it has
// flushed. More than that is written once reads have lost a multiple of what the merge costs. That is the answer to
// renting or buying: however long reads go on, the costs are bounded by a multiple of the least. Flushes then make up
// for what was written.

// ReasonIdle is why an idle store merges runs.
const ReasonIdle = "the store is idle, and runs that could be one make reads dearer"

// What reads and merges cost, in nanoseconds of a processor: see docs/adr/0026 and kv/advice.
const (
	filterCost = 30   // to ask a filter
	cachedCost = 350  // to search a block in the cache
	readCost   = 4000 // to read a block
	visitCost  = 480  // to seek in a file for a scan, with the block in the cache
	byteCost   = 9    // to merge a byte, and to lose it from the cache

	idleFactor = 2 // how many times a merge's cost reads must have lost
)

// Reads count what reads did in runs above the last since Open.
type Reads struct {
	Denied   uint64 // lookups that a filter answered
	Index    uint64 // lookups that asked an index
	True     uint64 // of these, those for which a filter was right
	Hits     uint64 // lookups that found their key
	Blocks   uint64 // of lookups
	FromDisk uint64 // of these blocks, those from the disk
	Visits   uint64 // of scans, to files that they read
	Scanned  uint64 // blocks that scans read from the disk
}

// worth returns how many bytes a merge may write for what reads cost after others.
func (r *Reads) worth(last *Reads) int64 {
	index, visits := r.Index-last.Index, r.Visits-last.Visits
	absent := float64(index - min(index, max(r.True-last.True, r.Hits-last.Hits)))
	read := absent*float64(r.FromDisk-last.FromDisk)/float64(max(r.Blocks-last.Blocks, 1)) +
		float64(min(visits, r.Scanned-last.Scanned))
	return int64((filterCost*float64(r.Denied-last.Denied) + (filterCost+cachedCost)*absent +
		visitCost*float64(visits) + (readCost-cachedCost)*read) / byteCost / idleFactor)
}

// An Idle says what idle jobs may write now, in bytes.
type Idle struct {
	Flushed int64 // what was flushed and is not paid out; negative after merges that reads have paid for
	Lost    int64 // what reads have lost since the last flush is worth
	Free    int64 // room on the disk; math.MaxInt64: not known
}

// price returns how many bytes of an idle job must be paid for. Those of level 0 go down in any case.
func (j *Job) price() int64 { return version.SizeOf(j.Tables()) - version.SizeOf(j.Inputs[0]) }

// pays reports whether a job is paid for. With snapshots it keeps old versions, and what it saves is less.
func (in *Input) pays(j *Job) bool {
	price, worth, idle := j.price(), j.price(), in.Idle
	if in.OldestSnapshot < base.MaxSeqNum {
		worth *= 2
	}
	return version.SizeOf(j.Tables()) <= idle.Free/2 &&
		(worth <= idle.Flushed || worth <= idle.Lost && price-idle.Flushed <= tableBytes(in.Version))
}

// idle picks a job of an idle store, in which nothing is due and nothing runs.
func (in *Input) idle(baseLevel int) (j *Job) {
	if in.Idle == nil || in.BusyThreads > 0 || len(in.State.Reserved)+len(in.State.Wanted) > 0 || in.Disk.Full {
		return nil
	}
	if level0 := in.Version.Level0(); len(level0) > 0 {
		j = merge(in.Version, ReasonIdle, level0, 0, baseLevel)
	}
	if j == nil || in.Version.RunsOf(j.Tables()) < 2 {
		j = in.idlePiece()
	}
	if j == nil || !in.pays(j) || in.conflicts(j) {
		return nil
	}
	return j
}

// pieceFiles bounds the size of a piece, in files of the usual size, where the tables of its upper level are smaller.
// Neighbouring pieces both rewrite the file of the last level that reaches into both.
const pieceFiles = 16

// idlePiece takes the first tables of the highest level that share keys with a deeper one into the last level, with
// what they overlap on the way.
func (in *Input) idlePiece() *Job {
	for n := range lastLevel {
		for _, r := range in.Version.Levels[n].Runs {
			for i, first := range r.Tables() {
				if len(in.Version.OlderThan(n, r.Num, version.Span{Lo: first.Smallest, Hi: first.UpperBound()})) == 0 {
					continue
				}
				j := in.toLast(n, r.Between(i, i+1))
				for to := i + 2; to <= r.Len(); to++ {
					more := in.toLast(n, r.Between(i, to))
					if version.SizeOf(more.Tables()) > pieceFiles*in.TargetFileSize {
						break
					}
					j = more
				}
				return j
			}
		}
	}
	return nil
}

// toLast returns a job that merges neighbours of a level, all deeper tables that they overlap, and those that these
// overlap, into the last level.
func (in *Input) toLast(level int, tables []*version.Table) *Job {
	j := &Job{Kind: Merge, Reason: ReasonIdle, Level: level, Output: lastLevel}
	j.Inputs[level] = tables
	for n := level + 1; n < NumLevels; n++ {
		s := version.SpanOf(j.Tables())
		j.Inputs[n] = in.Version.Levels[n].Overlapping(s.Lo, s.Hi)
	}
	return j
}
