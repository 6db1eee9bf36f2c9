package compaction

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// A Job is a compaction: tables of one or more levels are merged into a run of one of them, or of the level below.
//
// Its inputs are closed: a table between the inputs and the output, the output's level included, that shares keys with
// an input is an input too. (The order is that in which lookups ask, see version.OlderThan.)
type Job struct {
	Kind       Kind
	Asked      bool // by a caller, in whose goroutine the job runs
	Reason     string
	Level      int                         // the highest level of the inputs
	Output     int                         // the level of the output
	Run        uint64                      // of the output: a new one, or one without keys of the inputs
	Inputs     [NumLevels][]*version.Table // by level
	Gaps       [][]byte                    // where new tables must end: tables of their run are between inputs
	Candidates map[uint64]bool             // blob files whose records are copied

	// What Prepare fills in.
	Version *version.Version // which has the inputs
	Span    version.Span     // of all inputs
	Older   []*version.Run   // those that are older than the inputs, and have keys in the span

	pinned   bool         // Version is referred to
	reserved *Reservation // of the output
}

// Tables returns all inputs.
func (j *Job) Tables() []*version.Table { return slices.Concat(j.Inputs[:]...) }

// Prepare fills in what follows from the inputs, and returns the job: a merge becomes a Move if its inputs may become
// the output as they are. All functions of this package that return jobs to callers have called it.
func (in *Input) Prepare(j *Job) *Job {
	j.Version, j.Span = in.Version, version.SpanOf(j.Tables())
	j.joinRun()
	j.Older = in.Version.OlderThan(j.Output, j.Run, j.Span)
	if in.movable(j) {
		j.Kind = Move
	}
	return j
}

// joinRun makes the output part of the output level's run, if that has only one of which something stays: its number
// need not be 0 in a store that was tiered before.
func (j *Job) joinRun() {
	runs := j.Version.Levels[j.Output].Runs
	if j.Output > 0 && !j.Kind.Rules().WholeRuns && len(runs) == 1 && len(j.Inputs[j.Output]) < runs[0].Len() {
		j.Run = runs[0].Num
	}
}

// Bottom reports whether nothing older than the inputs can hold key. Within level 0 there may always be something.
func (j *Job) Bottom(key []byte) bool {
	for _, r := range j.Older {
		if r.MayContain(key) {
			return false
		}
	}
	return j.Output > 0
}

// BottomSpan reports whether nothing older than the inputs can hold keys of [lo, hi).
func (j *Job) BottomSpan(lo, hi []byte) bool {
	for _, r := range j.Older {
		if r.Overlaps(lo, hi) {
			return false
		}
	}
	return j.Output > 0
}

// A Kind says what a job does.
type Kind uint8

// The kinds of jobs.
const (
	Move           Kind = iota // makes the inputs the output, as they are
	Merge                      // takes tables to the next level, or merges some of level 0
	MergeRuns                  // merges whole runs
	MergeRange                 // merges all that has keys of a range into the last level
	Rewrite                    // rewrites tables in their run, without droppable entries
	RewriteFilters             // rewrites tables in their run, with other filters
	CollectBlobs               // rewrites tables in their run, and copies records out of candidates
	JoinBlobs                  // rewrites tables in their run, and copies records of small blob files into one
)

// Rules are what a kind implies.
type Rules struct {
	MayMove       bool // Prepare may make it a Move
	WholeRuns     bool // the inputs are whole runs
	CollectsBlobs bool // the job is for blob files, and takes few tables
	OneRange      bool // one thread writes one blob file after the other
	FairFilters   bool // see filterbudget.Plan.Fair
}

var rules = [...]Rules{
	Move:           {},
	Merge:          {MayMove: true},
	MergeRuns:      {MayMove: true, WholeRuns: true},
	MergeRange:     {},
	Rewrite:        {},
	RewriteFilters: {FairFilters: true},
	CollectBlobs:   {CollectsBlobs: true},
	JoinBlobs:      {CollectsBlobs: true, OneRange: true},
}

// Rules returns what the kind implies.
func (k Kind) Rules() Rules { return rules[k] }

// merge returns a job that takes tables of a level down, with what they overlap in the output level.
func merge(v *version.Version, reason string, tables []*version.Table, level, output int) *Job {
	j := &Job{Kind: Merge, Reason: reason, Level: level, Output: output}
	s := version.SpanOf(tables)
	j.Inputs[level] = tables
	if output != level {
		j.Inputs[output] = v.Levels[output].Overlapping(s.Lo, s.Hi)
	}
	return j
}

// mergeLevels returns a job that merges all from one level to another into one run of the latter.
func mergeLevels(v *version.Version, reason string, from, to int) *Job {
	j := &Job{Kind: MergeRuns, Reason: reason, Level: from, Output: to}
	for n := from; n <= to; n++ {
		j.Inputs[n] = v.Levels[n].Tables()
	}
	return j
}

// toNextLevel returns a job that merges all runs of a level into a new run of the next.
func toNextLevel(v *version.Version, reason string, level int) *Job {
	j := mergeLevels(v, reason, level, level)
	j.Output, j.Run = level+1, v.Levels[level+1].NextRun()
	return j
}

// mergeRuns returns a job that merges neighbouring runs, the newest first, into one in place of the oldest.
func mergeRuns(reason string, runs []*version.Run) *Job {
	oldest := runs[len(runs)-1]
	j := &Job{Kind: MergeRuns, Reason: reason, Level: runs[0].Level, Output: oldest.Level, Run: oldest.Num}
	for _, r := range runs {
		j.Inputs[r.Level] = append(j.Inputs[r.Level], r.Tables()...)
	}
	return j
}

// rewrite returns a job that rewrites tables of a run in their place. The tables are in key order. In level 0, where
// the age of a run is that of all its tables, it takes the whole run.
func rewrite(v *version.Version, kind Kind, reason string, tables []*version.Table) *Job {
	id, _ := v.RunOf(tables[0])
	j := &Job{Kind: kind, Reason: reason, Level: id.Level, Output: id.Level}
	runs := v.Levels[id.Level].Runs
	run := runs[slices.IndexFunc(runs, func(r *version.Run) bool { return r.Num == id.Run })]
	if id.Level == 0 {
		j.Inputs[0] = run.Tables()
		return j
	}
	j.Run = id.Run
	j.Inputs[id.Level] = slices.Clone(tables)
	j.noteGaps(run)
	return j
}

// noteGaps notes where tables of the output's run are between inputs: new tables end there.
func (j *Job) noteGaps(run *version.Run) {
	inputs := map[*version.Table]bool{}
	for _, t := range j.Inputs[run.Level] {
		inputs[t] = true
	}
	s := version.SpanOf(j.Tables())
	j.Gaps = nil
	for _, t := range run.Overlapping(s.Lo, s.Hi) {
		if !inputs[t] {
			j.Gaps = append(j.Gaps, t.UpperBound())
		}
	}
}
