package compaction

import (
	"cmp"
	"slices"
	"sort"

	"github.com/siftkv/siftkv/internal/version"
)

// Blob garbage collection goes in batches. The files with the least live bytes become candidates. All tables that
// refer to them are rewritten in their runs, a few at a time. Their records are copied on the way, into the blob files
// to which values go that are separated then; handles of other files stay as they are. Jobs that begin for other
// reasons meanwhile do the same. A candidate is gone with the last table that refers to it.
//
// Nothing new ever refers to a candidate: flushes refer to files of their own, and jobs that begin after the choice
// copy what they meet. A job that began before keeps handles: when no table is left that is known to refer to a
// candidate, all tables are checked once more.

// BlobGC is the state of blob garbage collection.
type BlobGC struct {
	Excluded   map[uint64]bool  // blob files that could not be read; true: for good
	candidates map[uint64]bool  // of the batch; never changed, as jobs have it
	waiting    []*version.Table // tables known to refer to candidates, by run and in key order
}

// running reports whether a batch has begun.
func (b *BlobGC) running() bool { return len(b.candidates) > 0 }

// Abandon ends the batch. The next one may be smaller.
func (b *BlobGC) Abandon() { b.candidates, b.waiting = nil, nil }

// Exclude keeps blob GC from a file that cannot be read, and reports whether it did already. What is for good stays so.
func (b *BlobGC) Exclude(num uint64, forGood bool) (known bool) {
	was, known := b.Excluded[num]
	if b.Excluded == nil {
		b.Excluded = map[uint64]bool{}
	}
	b.Excluded[num] = was || forGood
	return known
}

// DropStuck takes files that cannot be collected out of the batch.
func (s *State) DropStuck(v *version.Version) {
	s.GC.candidates, s.GC.waiting = s.candidatesLeft(v), nil
}

// StuckBlobs returns the blob files that cannot be collected: those that could not be read, and those to which
// quarantined tables refer.
func (s *State) StuckBlobs(v *version.Version) map[uint64]bool {
	stuck := map[uint64]bool{}
	for num := range s.GC.Excluded {
		stuck[num] = true
	}
	for _, t := range s.Quarantined {
		if !t.Quarantined || !v.Has(t.Num) {
			continue
		}
		for _, r := range t.Blobs {
			stuck[r.Num] = true
		}
	}
	return stuck
}

// candidatesLeft returns the candidates that are still there and can be collected.
func (s *State) candidatesLeft(v *version.Version) map[uint64]bool {
	stuck, left := s.StuckBlobs(v), map[uint64]bool{}
	for num := range s.GC.candidates {
		if v.Blob(num) != nil && !stuck[num] {
			left[num] = true
		}
	}
	return left
}

// blobFilesAtOnce is how many blob files' worth of records a step of blob GC copies. With that many, few files are
// smaller because the step ends, and other jobs do not wait for long.
const blobFilesAtOnce = 4

// MaxGCTables is how many bytes of tables a step of blob GC takes, if it takes more than one table. Where most values
// are in tables, each of these may refer to little of a candidate.
func (o *Options) MaxGCTables(v *version.Version) int64 {
	return max(blobFilesAtOnce*o.NewBlobSize(v), 8*o.TargetFileSize)
}

// blobGC returns the next step of a batch, and begins a batch if that is due. It returns nil if there is nothing to do
// now.
func (in *Input) blobGC(s *BlobSpace) *Job {
	v, b := in.Version, &in.State.GC
	for range 2 {
		j, waits := in.nextStep()
		if j != nil || waits {
			return j
		}
		candidates := in.State.candidatesLeft(v)
		if len(candidates) == 0 && s.NeedsGC() {
			if candidates = in.chooseCandidates(s, false); len(candidates) == 0 {
				candidates = in.chooseCandidates(s, true)
			}
		}
		b.Abandon()
		if len(candidates) == 0 {
			return nil
		}
		if b.waiting = v.ReferringTo(candidates); len(b.waiting) == 0 {
			return nil
		}
		b.candidates = candidates
	}
	return nil
}

// chooseCandidates returns the emptiest files, with the garbage that is over the limit and that of a batch. None is
// fuller than all are together, so that there is always more to free than on average. If the disk has no room to copy
// what is live in them, they are fewer. It takes O(n log n), with n files.
//
// Files with values of level 0, which goes down before, are only taken on demand. Commits may have overwritten all but
// a few of a log's values, and level 0 may stay as it is for long.
func (in *Input) chooseCandidates(s *BlobSpace, ofLevel0 bool) map[uint64]bool {
	v := in.Version
	left := in.State.StuckBlobs(v)
	if !ofLevel0 {
		for t := range v.Levels[0].All() {
			for _, r := range t.Blobs {
				left[r.Num] = true
			}
		}
	}
	average := s.Live / (s.Live + s.Garbage)
	var files []*version.LiveBlob
	for b := range v.Blobs() {
		if b.Garbage() > 0 && !left[b.Num] && fullness(b) <= average {
			files = append(files, b)
		}
	}
	candidates, freed := map[uint64]bool{}, 0.0
	room := in.Disk.Free - in.SpaceWanted(v) + 2*in.NewBlobSize(v)
	for _, b := range emptiestFirst(files) {
		room -= int64(b.LiveBytes)
		if freed >= s.Over()+s.Batch || room < 0 && len(candidates) > 0 {
			break
		}
		candidates[b.Num] = true
		freed += float64(b.Garbage())
	}
	return candidates
}

// fullness returns which share of a blob file's records is live.
func fullness(b *version.LiveBlob) float64 {
	return float64(b.LiveBytes) / (float64(b.LiveBytes) + float64(b.Garbage()))
}

// emptiestFirst sorts blob files by their fullness, and returns them.
func emptiestFirst(files []*version.LiveBlob) []*version.LiveBlob {
	sort.Slice(files, func(i, j int) bool {
		a, b := files[i], files[j]
		return cmp.Or(cmp.Compare(fullness(a), fullness(b)), cmp.Compare(a.Num, b.Num)) < 0
	})
	return files
}

// nextStep returns the next step of the batch. It reports whether there is one that has to wait.
func (in *Input) nextStep() (j *Job, waits bool) {
	v, b := in.Version, &in.State.GC
	b.waiting = slices.DeleteFunc(b.waiting, func(t *version.Table) bool {
		_, listed := v.RunOf(t)
		return !listed || t.Quarantined
	})
	for at := 0; at < len(b.waiting); {
		tables := in.tablesOfStep(b.waiting[at:])
		if len(tables) > 0 {
			if j = in.collectWithAbove(tables, len(tables) == len(b.waiting)); j != nil && !in.conflicts(j) {
				return j, false
			}
			if j = rewrite(v, CollectBlobs, ReasonGarbage, tables); !in.conflicts(j) {
				return j, false
			}
		}
		at += max(len(tables), 1)
	}
	return nil, len(b.waiting) > 0
}

// tablesOfStep returns the first of some tables that a step takes. They are neighbours among these of one run. In
// level 0, where the age of a run is that of all its tables, they are the whole run. There are none if the first is
// being compacted.
func (in *Input) tablesOfStep(tables []*version.Table) []*version.Table {
	v := in.Version
	run, _ := v.RunOf(tables[0])
	maxRecords, records := uint64(blobFilesAtOnce*in.NewBlobSize(v)), uint64(0)
	if in.shortOfSpace() {
		maxRecords = 0
	}
	maxBytes, bytes := in.MaxGCTables(v), int64(0)
	for n, t := range tables {
		id, _ := v.RunOf(t)
		bytes += t.Size
		if id != run || t.Compacting || n > 0 && run.Level > 0 && (records >= maxRecords || bytes > maxBytes) {
			return tables[:n]
		}
		for _, r := range t.Blobs {
			if in.State.GC.candidates[r.Num] {
				records += r.Bytes
			}
		}
	}
	return tables
}

// collectWithAbove collects tables of the last level of a leveled store, together with what has keys of theirs in the
// next level above that has tables: what those hide is dropped then, and not copied. Level 0 comes in as a whole, so
// only if these are all tables that there are to rewrite. It returns nil if there is nothing above, or too much
// between the tables would come in.
func (in *Input) collectWithAbove(tables []*version.Table, all bool) *Job {
	v := in.Version
	id, _ := v.RunOf(tables[0])
	last := &v.Levels[lastLevel]
	if in.Style != Leveled || id.Level < lastLevel || len(last.Runs) != 1 || in.shortOfSpace() {
		return nil
	}
	j := rewrite(v, CollectBlobs, ReasonGarbage, tables)
	s := version.SpanOf(tables)
	for j.Level--; j.Level > 0 && v.Levels[j.Level].Len() == 0; j.Level-- {
	}
	if j.Level > 0 {
		j.Inputs[j.Level] = v.Levels[j.Level].Overlapping(s.Lo, s.Hi)
	} else if all {
		j.Inputs[0] = v.Level0()
	}
	if len(j.Inputs[j.Level]) == 0 {
		return nil
	}
	// What is below those above comes in too.
	within := map[*version.Table]bool{}
	for _, t := range tables {
		within[t] = true
	}
	s = version.SpanOf(j.Inputs[j.Level])
	for _, t := range last.Overlapping(s.Lo, s.Hi) {
		within[t] = true
	}
	s, j.Inputs[lastLevel] = version.SpanOf(j.Tables()), nil
	for _, t := range last.Overlapping(s.Lo, s.Hi) {
		if within[t] {
			j.Inputs[lastLevel] = append(j.Inputs[lastLevel], t)
		}
	}
	if version.SizeOf(j.Tables()) > 2*in.MaxGCTables(v) {
		return nil
	}
	j.noteGaps(last.Runs[0])
	return j
}
