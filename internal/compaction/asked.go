package compaction

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// Jobs that callers ask for. A caller waits for running jobs that are in the way (see Input.Busy), and calls again:
// the version may be another one then.

// MergeRange returns a job that merges all tables which may hold keys of [lo, end) into the last level. It returns
// nil if that would change nothing: all are in one run of the last level already, and among the finished ones. What a
// job wrote while the caller waited is not known to be finished.
func (in *Input) MergeRange(lo, end []byte, finished map[*version.Table]bool) *Job {
	v := in.Version
	j := &Job{Kind: MergeRange, Asked: true, Reason: "asked for", Level: lastLevel, Output: lastLevel}
	// The tables reach over the range, and others overlap them there: widen until nothing comes in any more.
	for n := -1; n != len(j.Tables()); {
		n = len(j.Tables())
		for level := range v.Levels {
			j.Inputs[level] = v.Levels[level].Overlapping(lo, end)
		}
		if tables := j.Tables(); len(tables) > 0 {
			s := version.SpanOf(tables)
			lo, end = s.Lo, s.Hi
		}
	}
	for level, inputs := range slices.Backward(j.Inputs[:]) {
		if len(inputs) > 0 {
			j.Level = level
		}
	}
	runs := len(v.Levels[lastLevel].RunsOver(lo, end))
	if len(j.Tables()) == 0 || j.Level == lastLevel && runs == 1 &&
		!slices.ContainsFunc(j.Tables(), func(t *version.Table) bool { return !finished[t] }) {
		return nil
	}
	return in.Prepare(j)
}

// RewriteFilters returns a job that rewrites tables of a run with the filters of the options: one table, or a run of
// level 0. It returns nil if the tables are not there any more, or are known to be damaged.
func (in *Input) RewriteFilters(run version.RunID, tables []*version.Table) *Job {
	for _, t := range tables {
		if id, ok := in.Version.RunOf(t); !ok || id != run || t.Quarantined {
			return nil
		}
	}
	j := &Job{Kind: RewriteFilters, Asked: true, Reason: "filters are rewritten", Level: run.Level, Output: run.Level}
	if run.Level > 0 {
		j.Run = run.Run
	}
	j.Inputs[run.Level] = tables
	return in.Prepare(j)
}

// minGarbage is the smallest garbage for which CollectRange takes a blob file: one part in minGarbage of its records.
const minGarbage = 20

// CollectRange returns a job for a batch of the blob files with more than a little garbage, or nil if there are none.
// These have numbers below next, and values of tables of the last level with keys of [lo, end) only. A batch is the
// emptiest files. It copies as many bytes as a batch of the background frees, or as the tables have that are read for
// it.
func (in *Input) CollectRange(lo, end []byte, next uint64) *Job {
	v := in.Version
	if v.BlobTotals().Files == 0 {
		return nil
	}
	tables := v.Levels[lastLevel].Overlapping(lo, end)
	if len(tables) == 0 || len(v.Levels[lastLevel].RunsOver(lo, end)) != 1 {
		return nil
	}
	s := in.BlobSpace()
	candidates, left := map[uint64]bool{}, max(s.Batch, float64(version.SizeOf(tables)))
	for _, b := range emptiestFirst(in.garbageFiles(tables, next)) {
		if left -= float64(b.LiveBytes); left < 0 && len(candidates) > 0 {
			break
		}
		candidates[b.Num] = true
	}
	some := referring(tables, candidates)
	if len(some) == 0 {
		return nil
	}
	j := rewrite(v, CollectBlobs, ReasonGarbage, some)
	j.Asked, j.Candidates = true, candidates
	return in.Prepare(j)
}

// garbageFiles returns the blob files with more than a little garbage, with numbers below next, of which only some
// tables have values.
func (in *Input) garbageFiles(tables []*version.Table, next uint64) (files []*version.LiveBlob) {
	live, stuck := map[uint64]uint64{}, in.State.StuckBlobs(in.Version)
	for _, t := range tables {
		for _, r := range t.Blobs {
			live[r.Num] += r.Bytes
		}
	}
	for num, bytes := range live {
		b := in.Version.Blob(num)
		if num < next && b.LiveBytes == bytes && !stuck[num] && b.Garbage() > (b.LiveBytes+b.Garbage())/minGarbage {
			files = append(files, b)
		}
	}
	return files
}

// JoinRange returns a job that joins small blob files, with numbers below next, of which only tables of the last level
// with keys of [lo, end) have values. It returns nil if there are few.
func (in *Input) JoinRange(lo, end []byte, next uint64) *Job {
	last := &in.Version.Levels[lastLevel]
	if in.Version.BlobTotals().Files < minJoined || len(last.RunsOver(lo, end)) != 1 {
		return nil
	}
	j := in.join(last.Overlapping(lo, end), minJoined, next)
	if j == nil {
		return nil
	}
	j.Asked = true
	return in.Prepare(j)
}

// IngestLevel returns the lowest level for a table that is newer than all others and has keys in s. Above that level,
// and in it, no table shares keys with s. In level 0 they may. A table of a running job's output may reach over a gap
// between inputs, so the levels and spans of these are taken too. Levels that are empty because the store is small, or
// tiered, stay so. In a level the table joins any run, since it shares keys with none.
func (in *Input) IngestLevel(s version.Span) (lowest int) {
	v := in.Version
	baseLevel, _ := in.LevelTargets(v)
	for n := range v.Levels {
		if v.Levels[n].Overlaps(s.Lo, s.Hi) {
			break
		}
		used := n >= baseLevel
		if in.Style != Leveled {
			used = n == lastLevel || len(v.Levels[n].Runs) > 0
		}
		if used && !in.State.IsReserved(n, s) {
			lowest = n
		}
	}
	return lowest
}
