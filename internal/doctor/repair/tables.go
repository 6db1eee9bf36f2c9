package repair

import (
	"cmp"
	"errors"
	"path/filepath"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
)

// tables goes through the original tables: keeps those that are whole, salvages the
// others.
func (r *repairer) tables() error {
	for i := range r.s.Tables {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.o.Progress("salvage", i, len(r.s.Tables))
		t := &r.s.Tables[i]
		switch {
		case r.s.Unfinished(t):
			r.leaveOutIngest(t)
		case t.Holds != "" && t.Listing == nil:
			r.report.file(t.Name, LeftOut, "it is "+t.Holds+" under another name")
		case r.s.Obsolete(t):
			r.report.file(t.Name, LeftOut, "the manifest does not list it")
		case !t.Present:
			r.report.file(t.Name, Missing, "")
			r.loseTable(t, "the table is missing")
		case len(t.Damage) == 0:
			r.report.file(t.Name, Kept, "")
			p := &piece{
				level: t.Level, run: t.Run, t: t.Describe(), kept: true, checked: r.s.Trusted() && t.Listing != nil,
				fs: r.fs, path: filepath.Join(r.dir, t.Name), from: []string{t.Name},
			}
			if r.s.Rescues(t) {
				p.level = 0
				r.rescued.add(&p.t)
			}
			r.pieces = append(r.pieces, p)
		default:
			if err := r.salvage(t); err != nil {
				return err
			}
		}
	}
	r.o.Progress("salvage", len(r.s.Tables), len(r.s.Tables))
	return nil
}

// loseTable reports that nothing of a table is left.
func (r *repairer) loseTable(t *survey.Table, what string) {
	l := Loss{File: t.Name, What: what}
	if t.Listing != nil {
		n := t.Listing.Entries + t.Listing.RangeDeletes
		l.Writes, l.Ranges = &n, []Range{*boundsOf(t.Listing)}
	} else {
		l.Possible = true // it may never have been finished
	}
	r.report.lose(l)
	r.loseSeparated(t, nil, nil)
}

// leaveOutIngest leaves out a table of an ingest that was under way: the store had none
// of its tables, or all. A manifest that can be trusted says that it had none.
func (r *repairer) leaveOutIngest(t *survey.Table) {
	r.report.file(t.Name, LeftOut, "an ingest that a crash broke off brought it in")
	if r.s.Trusted() {
		return
	}
	l := Loss{File: t.Name, What: "a file of an ingest that may not have ended; all files of it are left out",
		Possible: true}
	if t.Info != nil {
		n, d := t.Info.Entries+t.Info.RangeDeletes, t.Describe()
		l.Writes, l.Ranges = &n, []Range{*boundsOf(&d)}
	}
	r.report.lose(l)
}

// salvage writes what checks out of a table to a new one.
func (r *repairer) salvage(t *survey.Table) error {
	w := r.newTables(writerOptions(t.Info), 0)
	o := &sstable.SalvageOptions{Name: filepath.Join(r.dir, t.File())}
	if t.Listing != nil {
		o.ID, o.Seq = t.Listing.ID, t.Listing.Seq
	}
	var sv *sstable.Salvage
	var failed error
	var seen handlesOfKey
	fault, err := r.s.Examine(t.File(), func(f vfs.ReadFile) (err error) {
		sv, err = sstable.SalvageFile(onlyReader{f}, sizeWithin(f, t), o, func(k base.InternalKey, value []byte) error {
			if !seen.has(k, value) {
				failed = w.add(k, value)
			}
			return failed
		})
		return err
	})
	switch {
	case err != nil || failed != nil:
		return cmp.Or(failed, err)
	case errors.Is(fault, sstable.ErrNewerFormat):
		return fault
	case fault == nil && t.Listing != nil && sv.ID != t.Listing.ID:
		fault = errors.New("it is another file, put in this one's place")
	}
	if fault != nil {
		w.abort()
		r.report.file(t.Name, LeftOut, fault.Error())
		r.loseTable(t, "nothing can be salvaged")
		return nil
	}
	tables, err := w.finish(rangedel.NewSet(sv.Tombstones))
	if err != nil {
		return err
	}
	why := ""
	if t.Source != "" {
		why = "it was in the file " + t.Source
	}
	r.report.file(t.Name, Rewrote, why)
	var rest *piece
	for _, p := range tables {
		p.level, p.run, p.from = t.Level, t.Run, []string{t.Name}
		r.pieces = append(r.pieces, p)
		rest = p
	}
	r.loseEntries(t, sv)
	r.loseSeparated(t, sv, rest)
	r.loseTombstones(t, sv)
	return nil
}

// sizeWithin returns how many bytes of a table's file are the table's: those that it had, if the file has more now and
// no footer at its end. Salvaging needs the file in memory, and foreign bytes after a table have no bound.
func sizeWithin(f vfs.ReadFile, t *survey.Table) int64 {
	if t.Listing == nil || t.Listing.Size >= t.Size || sstable.ReadID(onlyReader{f}, t.Size) != 0 {
		return t.Size
	}
	return t.Listing.Size
}

// loseEntries reports the point entries that could not be salvaged.
func (r *repairer) loseEntries(t *survey.Table, sv *sstable.Salvage) {
	lost, known := sv.EntriesLost()
	if !known && t.Listing != nil && t.Listing.Entries >= sv.Entries {
		lost, known = t.Listing.Entries-sv.Entries, true
	}
	if known && lost == 0 {
		return
	}
	l := Loss{File: t.Name, What: "data blocks that are damaged", Ranges: []Range{}}
	if known {
		l.Writes = &lost
	}
	for _, g := range sv.Gaps {
		lossRange := Range{Lower: g.After, Upper: g.Before}
		lossRange.clip(t.Listing)
		l.Ranges = append(l.Ranges, lossRange)
	}
	// With nothing but its end unknown, the table may be all there.
	l.Possible = !known && len(sv.Gaps) == 1 && sv.Gaps[0].Before == nil
	r.report.lose(l)
}

// loseTombstones reports range tombstones that are damaged: what they deleted may
// be back.
func (r *repairer) loseTombstones(t *survey.Table, sv *sstable.Salvage) {
	if !sv.TombstonesLost || t.Listing != nil && t.Listing.RangeDeletes == 0 {
		return
	}
	l := Loss{File: t.Name, What: "range deletes that are damaged; keys that they deleted may be back"}
	switch {
	case t.Listing != nil:
		l.Writes, l.Ranges = &t.Listing.RangeDeletes, []Range{*boundsOf(t.Listing)}
	case sv.Properties != nil:
		l.Writes = &sv.Properties.RangeDeletes
	default:
		l.Possible = true
	}
	r.report.lose(l)
}

// writerOptions returns the known options that a table was written with.
func writerOptions(info *sstable.FileInfo) *sstable.WriterOptions {
	o := &sstable.WriterOptions{}
	if info == nil {
		return o
	}
	if info.Compression.Valid() {
		o.Compression = info.Compression
	}
	if p, err := filterpolicy.Parse(info.FilterPolicy); err == nil && info.FilterPolicy != "" {
		o.Filter = p
	}
	if p, err := filterpolicy.ParseRange(info.RangeFilterPolicy); err == nil && info.RangeFilterPolicy != "" {
		o.RangeFilter = p
	}
	return o
}

// onlyReader is a file that a Reader does not close.
type onlyReader struct{ f vfs.ReadFile }

func (r onlyReader) ReadAt(b []byte, off int64) (int, error) { return r.f.ReadAt(b, off) }
