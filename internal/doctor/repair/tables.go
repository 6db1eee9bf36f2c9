package repair

import (
	"cmp"
	"errors"
	"path/filepath"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/tablemeta"
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
		case r.s.Obsolete(t):
			r.report.file(t.Name, LeftOut, "the manifest does not list it")
		case !t.Present:
			r.report.file(t.Name, Missing, "")
			r.loseTable(t, "the table is missing")
		case len(t.Damage) == 0:
			r.report.file(t.Name, Kept, "")
			p := &piece{
				level: t.Level, run: t.Run, t: t.Describe(), kept: true,
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
	w := r.newTables(writerOptions(t), 0)
	o := &sstable.SalvageOptions{Name: filepath.Join(r.dir, t.Name)}
	if t.Listing != nil {
		o.ID, o.Seq = t.Listing.ID, t.Listing.Seq
	}
	var sv *sstable.Salvage
	var failed error
	fault, err := r.s.Examine(t.Name, func(f vfs.ReadFile) (err error) {
		sv, err = sstable.SalvageFile(onlyReader{f}, t.Size, o, func(k base.InternalKey, value []byte) error {
			failed = w.add(k, value)
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
	r.report.file(t.Name, Rewrote, "")
	for _, p := range tables {
		p.level, p.run, p.from = t.Level, t.Run, []string{t.Name}
		r.pieces = append(r.pieces, p)
	}
	r.loseEntries(t, sv)
	r.loseTombstones(t, sv)
	return nil
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

// writerOptions are those that a table was written with, as far as they are known.
func writerOptions(t *survey.Table) *sstable.WriterOptions {
	o := &sstable.WriterOptions{}
	if t.Info == nil {
		return o
	}
	if t.Info.Compression.Valid() {
		o.Compression = t.Info.Compression
	}
	if p, err := filterpolicy.Parse(t.Info.FilterPolicy); err == nil && t.Info.FilterPolicy != "" {
		o.Filter = p
	}
	if p, err := filterpolicy.ParseRange(t.Info.RangeFilterPolicy); err == nil && t.Info.RangeFilterPolicy != "" {
		o.RangeFilter = p
	}
	return o
}

// onlyReader is a file that a Reader does not close.
type onlyReader struct{ f vfs.ReadFile }

func (r onlyReader) ReadAt(b []byte, off int64) (int, error) { return r.f.ReadAt(b, off) }

// A tableWriter writes one sorted run to new tables of about a size, cut between
// user keys; range tombstones are cut with them. Call order: add* (finish | abort).
type tableWriter struct {
	r      *repairer
	o      *sstable.WriterOptions
	size   int64 // 0: one table
	w      *sstable.Writer
	file   vfs.WriteFile
	num    uint64
	start  []byte // the open table's span begins here; nil: at the first key
	tables []*piece
	last   []byte

	tombs *rangedel.Set // known before the first add if the run is cut
}

func (r *repairer) newTables(o *sstable.WriterOptions, size int64) *tableWriter {
	with := sstable.WriterOptions{}
	if o != nil {
		with = *o
	}
	with.Merger = r.mergerName()
	return &tableWriter{r: r, o: &with, size: size}
}

// mergerName returns the name of the merger of the store's operands, as the manifest
// or a table has it; "" if none does.
func (r *repairer) mergerName() string {
	if m := r.s.Manifest; m != nil && m.First.Merger != "" {
		return m.First.Merger
	}
	for i := range r.s.Tables {
		if info := r.s.Tables[i].Info; info != nil && info.Merger != "" {
			return info.Merger
		}
	}
	return ""
}

func (w *tableWriter) add(k base.InternalKey, value []byte) error {
	if w.w != nil && w.size > 0 && w.w.Size() >= w.size && string(w.last) != string(k.User) {
		if err := w.close(k.User); err != nil {
			return err
		}
		w.start = append([]byte{}, k.User...)
	}
	if w.w == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	w.last = append(w.last[:0], k.User...)
	return w.w.Add(k, value)
}

func (w *tableWriter) open() (err error) {
	w.num = w.r.nextFile
	w.r.nextFile++
	path := filepath.Join(w.r.stageDir, manifest.FileName(manifest.FileTable, w.num))
	if w.file, err = w.r.stage.Create(path); err != nil {
		return err
	}
	w.r.written = append(w.r.written, path)
	w.w = sstable.NewWriter(w.file, w.o)
	return nil
}

// close finishes the open table, whose span ends before end (nil: no bound).
func (w *tableWriter) close(end []byte) error {
	tombs := w.tombs.Clip(nil, w.start, end)
	if w.w == nil {
		if len(tombs) == 0 {
			return nil
		}
		if err := w.open(); err != nil {
			return err
		}
	}
	for _, t := range tombs {
		if err := w.w.AddTombstone(t); err != nil {
			return err
		}
	}
	info, err := w.w.Finish()
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err != nil {
		return err
	}
	w.w, w.file = nil, nil
	w.tables = append(w.tables, &piece{
		level: -1, t: tablemeta.Of(w.num, info, tombs), fs: w.r.stage,
		path: filepath.Join(w.r.stageDir, manifest.FileName(manifest.FileTable, w.num)),
	})
	return nil
}

// finish closes the last table and returns all. Tombstones may be given here if the
// run is not cut.
func (w *tableWriter) finish(tombs *rangedel.Set) ([]*piece, error) {
	if tombs != nil {
		w.tombs = tombs
	}
	err := w.close(nil)
	return w.tables, err
}

// abort gives up the open table; its file is removed when the repair ends.
func (w *tableWriter) abort() {
	if w.file != nil {
		_ = w.file.Close() // it is removed next
		_ = w.r.stage.Remove(w.r.written[len(w.r.written)-1])
		w.r.written = w.r.written[:len(w.r.written)-1]
		w.w, w.file = nil, nil
	}
}
