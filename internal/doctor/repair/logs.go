package repair

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/survey"
)

type batch struct {
	log         string
	first, last uint64 // sequence numbers
	record      []byte
	broken      bool // something before it in the log could not be read
}

// logs replays the records of all logs that may have writes in no table, in the order of
// sequence numbers, into a table of level 0. It has them in memory.
func (r *repairer) logs() error {
	var batches []batch
	var names []string
	r.logEnds = map[uint64]uint64{}
	floor, beside := r.flushedTo()
	for i := range r.s.Logs {
		l := &r.s.Logs[i]
		switch {
		case r.s.InTables(l):
			r.report.file(l.Name, LeftOut, "its writes are in tables")
			continue
		case l.End == 0 && l.Records > 0:
			r.endValues(l, 0)
			r.report.file(l.Name, LeftOut,
				"it does not prove that it was synced, and the log before it has lost its end: history ends there")
			continue
		}
		records, writes, end := 0, uint64(0), uint64(0)
		names = append(names, l.Name)
		_, err := r.s.ReadLog(l.Num, func(rec survey.Record) error {
			last := rec.Seq + rec.Count - 1
			if rec.Offset < l.End {
				end = last
			}
			if last <= floor || rec.Offset >= l.End {
				r.keepLogged(rec.Data)
				return nil
			}
			// A log begins below the end of an earlier one only if a recovery had dropped
			// the rest of that.
			for n := len(batches); n > 0 && batches[n-1].last >= rec.Seq; n-- {
				batches = batches[:n-1]
			}
			records, writes = records+1, writes+rec.Count
			batches = append(batches, batch{l.Name, rec.Seq, last, bytes.Clone(rec.Data), rec.Broken})
			return nil
		})
		if err != nil {
			return err
		}
		r.endValues(l, end)
		r.report.file(l.Name, Replayed, fmt.Sprintf("%d records, %d writes", records, writes))
	}
	r.loseRecords(batches, beside.last)
	return r.writeBatches(batches, names, &beside)
}

// endValues notes the last write of a log that counts, for the blob files that the log has handles of.
func (r *repairer) endValues(l *survey.Log, last uint64) {
	for num := range l.Blobs {
		r.logEnds[num] = max(r.logEnds[num], last)
	}
}

// loseRecords reports the writes that logs have lost, once each: by their numbers if the manifest or records around
// them tell these. beside is the last write of tables that may have writes of earlier gaps.
func (r *repairer) loseRecords(batches []batch, beside uint64) {
	for _, name := range r.s.MissingLogs {
		r.report.file(name, Missing, "")
	}
	if m := r.s.Manifest; r.s.Trusted() && m.ClosedSeq > 0 {
		for _, g := range m.Missing {
			r.loseWrites(cmp.Or(strings.Join(r.s.SuspectLogs(), ", "), m.Name), g, beside)
		}
		return
	}
	r.loseGaps(batches, beside)
	for i := range r.s.Logs {
		if l := &r.s.Logs[i]; !r.s.InTables(l) {
			r.loseEnd(l, batches)
		}
	}
	for _, name := range r.s.MissingLogs {
		if !r.s.Trusted() || len(batches) == 0 { // else the first number tells what was in it
			r.report.lose(Loss{File: name, What: "the log is missing", Possible: true})
		}
	}
}

// loseWrites reports writes with missing numbers.
func (r *repairer) loseWrites(file string, g survey.SeqRange, beside uint64) {
	n := g.Last - g.First + 1
	r.report.lose(Loss{File: file, What: "records of the log", Writes: &n, FirstSeq: g.First, LastSeq: g.Last,
		Possible: g.First <= beside})
}

// loseGaps reports gaps between records of logs, and before the first if the manifest tells where tables end.
func (r *repairer) loseGaps(batches []batch, beside uint64) {
	for i, b := range batches {
		file, next, broken := b.log, uint64(0), b.broken
		switch {
		case i > 0:
			next = batches[i-1].last + 1
			if before := batches[i-1].log; before != b.log {
				file, broken = before+", "+b.log, true
			}
		case !r.s.Trusted():
			continue
		default:
			next = r.s.Manifest.LastSeq + 1
			if suspects := r.suspectsBefore(b.log); len(suspects) > 0 {
				file, broken = strings.Join(suspects, ", "), true
			}
		}
		if broken && b.first > next {
			r.loseWrites(file, survey.SeqRange{First: next, Last: b.first - 1}, beside)
		}
	}
}

// suspectsBefore returns the logs before one that may have lost writes.
func (r *repairer) suspectsBefore(log string) []string {
	_, num := manifest.ParseFileName(log)
	return slices.DeleteFunc(r.s.SuspectLogs(), func(name string) bool {
		_, n := manifest.ParseFileName(name)
		return n >= num
	})
}

// loseEnd reports what a log may have lost without a gap between records. That is after its last record if no later log
// has any, and before its first if its expected number is unknown.
func (r *repairer) loseEnd(l *survey.Log, batches []batch) {
	followed := slices.ContainsFunc(batches, func(b batch) bool {
		_, num := manifest.ParseFileName(b.log)
		return num > l.Num
	})
	led := r.s.Trusted() || len(batches) > 0 && batches[0].log != l.Name
	damaged := slices.ContainsFunc(l.Damage, func(d survey.Damage) bool {
		after, before := followed, led
		if l.Records > 0 {
			after, before = after || d.Offset < l.LastOffset, before || d.Offset > l.FirstOffset
		}
		return !after || !before
	})
	switch {
	case damaged:
		r.report.lose(Loss{File: l.Name, What: "the log is damaged", Possible: l.Closed && l.Skipped == 0})
	case !l.Closed && !followed:
		what := "the log has no end: what came after its last whole record, if anything did"
		r.report.lose(Loss{File: l.Name, What: what, Possible: true})
	case l.End > 0 && l.End <= l.LastOffset:
		r.report.lose(Loss{File: l.Name, What: "what came after a value that is not whole", Possible: true})
	}
}

// writeBatches writes a table of level 0, without the writes that beside has in tables.
func (r *repairer) writeBatches(batches []batch, names []string, beside *besideLogs) error {
	var points []batchrepr.Entry
	var tombs []rangedel.Tombstone
	for _, b := range batches {
		for e, err := range batchrepr.All(b.record) {
			var end []byte
			if err == nil && e.Key.Kind() == base.KindRangeDelete {
				end, err = rangedel.DecodeEnd(e.Value)
			}
			switch {
			case err != nil:
				return err
			case beside.has(e.Key, end):
				r.keepLogged(b.record)
			case e.Key.Kind() == base.KindRangeDelete:
				tombs = append(tombs, rangedel.Tombstone{Start: e.Key.User, End: end, Seq: e.Key.SeqNum()})
			default:
				points = append(points, e)
			}
		}
	}
	slices.SortFunc(points, func(a, b batchrepr.Entry) int { return base.Compare(a.Key, b.Key) })
	w := r.newTables(nil, 0)
	for _, p := range points {
		if err := w.add(p.Key, p.Value); err != nil {
			return err
		}
	}
	tables, err := w.finish(rangedel.NewSet(tombs))
	for _, p := range tables {
		p.level, p.from = 0, names
		r.pieces = append(r.pieces, p)
	}
	return err
}
