package compaction

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/version"
)

// An idle store merges runs that only make reads dearer. Nothing is due in it, but scans read a file of each run of
// level 0 and of each level above the last, and lookups of absent keys ask the filter of each.
//
// A job merges runs only where that leaves one run less, so idle jobs come to an end. Level 0 goes to the base level
// as a whole. Each level below it goes to the last one in pieces: a piece takes little space and can stop early.
//
// Level 0 aside, a store may write as many bytes as it has flushed. It may write more once reads have cost a multiple
// of what the merge does: however long reads go on, the costs are then bounded by a multiple of the least. Flushes make
// up for that later.

// ReasonIdle is why an idle store merges runs.
const ReasonIdle = "the store is idle, and runs that could be one make reads dearer"

// What reads and merges cost, in nanoseconds of a processor: see docs/adr/0026 and kv/advice.
const (
	filterCost = 30   // to ask a filter
	cachedCost = 350  // to search a block in the cache
	readCost   = 4000 // to read a block
	visitCost  = 480  // to seek in a file for a scan, with the block in the cache
	byteCost   = 9    // to merge a byte, and to lose it from the cache

	idleFactor = 2 // how many times a merge's cost reads must have cost
)

// Reads count what reads did in runs above the last since Open.
type Reads struct {
	Denied, Index, True uint64 // lookups: those that a filter answered, that asked an index, whose filter was right
	Hits                uint64 // lookups that found their key
	Blocks, FromDisk    uint64 // of lookups, and of these blocks those from the disk
	Visits, Scanned     uint64 // of scans: files that they read, and blocks from the disk
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
	Flushed int64 // what was flushed less what idle jobs wrote; negative after merges that reads have paid for
	Lost    int64 // what reads have cost since the last flush, as bytes
	Free    int64 // room on the disk; math.MaxInt64: not known
}

// price returns how many bytes of an idle job must be paid for. Those of level 0 go down in any case.
func (j *Job) price() int64 { return version.SizeOf(j.Tables()) - version.SizeOf(j.Inputs[0]) }

// pays reports whether a job is paid for. With snapshots it keeps old versions, and what it saves is
// less.
func (in *Input) pays(j *Job) bool {
	size, price, idle := version.SizeOf(j.Tables()), j.price(), in.Idle
	worth := price
	if in.OldestSnapshot < base.MaxSeqNum {
		worth *= 2
	}
	reads := worth <= idle.Lost && price-idle.Flushed <= tableBytes(in.Version)
	return size <= idle.Free/2 && (worth <= idle.Flushed || reads)
}

// idle picks a job of an idle store, in which nothing is due and nothing runs.
func (in *Input) idle(baseLevel int) *Job {
	if in.Idle == nil || in.BusyThreads > 0 || len(in.State.Reserved)+len(in.State.Wanted) > 0 || in.Disk.Full {
		return nil
	}
	if level0 := in.Version.Level0(); len(level0) > 0 {
		j := merge(in.Version, ReasonIdle, level0, 0, baseLevel)
		if in.Version.RunsOf(j.Tables()) > 1 && in.pays(j) && !in.conflicts(j) {
			return j
		}
	}
	return in.idlePiece()
}

// A piece is bounded in files of the usual size, and in tables of its upper level, which may be smaller.
const pieceFiles, pieceTables = 16, 64

// idlePiece takes the first tables of the highest level that share keys with a deeper one into the last level, with
// what they overlap on the way. It passes over those that are not paid for, and level 0 if that has several runs.
func (in *Input) idlePiece() *Job {
	for n := range lastLevel {
		runs := in.Version.Levels[n].Runs
		if len(runs) != 1 {
			continue
		}
		r := runs[0]
		for i := 0; i < r.Len(); i++ {
			var j *Job
			from := i
			for to := i + 1; to <= min(r.Len(), from+pieceTables); to++ {
				more := in.toLast(n, r.Between(from, to))
				if all := more.Tables(); len(all) == 1 || in.conflicts(more) ||
					to > from+1 && version.SizeOf(all) > pieceFiles*in.TargetFileSize {
					break
				}
				if in.pays(more) {
					j = more
				}
				i = to - 1
			}
			if j != nil {
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
