package repair

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/survey"
)

// A batch is a record of a log.
type batch struct {
	log         string
	first, last uint64 // sequence numbers
	record      []byte
}

// logs replays the records of all logs whose writes may be in no table, in the order
// of sequence numbers, into a table of level 0. It holds them in memory.
func (r *repairer) logs() error {
	var batches []batch
	var names []string
	floor, beside := r.flushedTo()
	for i := range r.s.Logs {
		l := &r.s.Logs[i]
		switch {
		case r.s.InTables(l):
			r.report.file(l.Name, LeftOut, "its writes are in tables")
			continue
		case l.End == 0 && l.Records > 0:
			r.report.file(l.Name, LeftOut,
				"it was not synced, and the log before it has lost its end: history ends there")
			continue
		}
		r.report.file(l.Name, Replayed, fmt.Sprintf("%d records, %d writes", l.Records, l.Writes))
		names = append(names, l.Name)
		_, err := r.s.ReadLog(l.Num, func(rec survey.Record) error {
			last := rec.Seq + rec.Count - 1
			if last <= floor || rec.Offset >= l.End {
				r.keepLogged(rec.Data)
				return nil
			}
			// A log begins below what an earlier one holds only if a recovery had left
			// that out.
			for n := len(batches); n > 0 && batches[n-1].last >= rec.Seq; n-- {
				batches = batches[:n-1]
			}
			batches = append(batches, batch{l.Name, rec.Seq, last, bytes.Clone(rec.Data)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	r.loseRecords(batches, beside.last)
	return r.writeBatches(batches, names, &beside)
}

// loseRecords reports gaps between the records, and logs that break off. Tables that stand beside
// the logs may have writes of gaps before their last.
func (r *repairer) loseRecords(batches []batch, beside uint64) {
	for i, b := range batches {
		if i == 0 || b.first == batches[i-1].last+1 {
			continue
		}
		from, to := batches[i-1].last+1, b.first-1
		n := to - from + 1
		file := b.log
		if before := batches[i-1].log; before != b.log {
			file = before + ", " + b.log
		}
		r.report.lose(Loss{File: file, What: "records of the log", Writes: &n, FirstSeq: from, LastSeq: to,
			Possible: from <= beside})
	}
	for i := range r.s.Logs {
		l := &r.s.Logs[i]
		if r.s.InTables(l) {
			continue
		}
		// What is missing after a record shows in the next one's sequence number.
		followed := len(batches) > 0 && l.Records > 0 && batches[len(batches)-1].last > l.LastSeq
		switch {
		case len(l.Damage) > 0 && (!followed || batches[0].log == l.Name && l.Damage[0].Offset < l.FirstOffset):
			r.report.lose(Loss{File: l.Name, What: "the log is damaged", Possible: l.Closed && l.Skipped == 0})
		case !l.Closed && !followed:
			what := "the log has no end: what came after its last whole record, if anything did"
			r.report.lose(Loss{File: l.Name, What: what, Possible: true})
		}
	}
	for _, name := range r.s.MissingLogs {
		r.report.file(name, Missing, "")
		r.report.lose(Loss{File: name, What: "the log is missing", Possible: true})
	}
}

// writeBatches writes a table of level 0, without what tables beside the logs have.
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
