package repair

import (
	"errors"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/vfs"
)

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

// create makes a new file of the repaired store, under a number that no file has.
func (r *repairer) create(kind manifest.FileKind) (f vfs.WriteFile, num uint64, path string, err error) {
	num = r.nextFile
	r.nextFile++
	path = filepath.Join(r.stageDir, manifest.FileName(kind, num))
	if f, err = r.stage.Create(path); err == nil {
		r.written = append(r.written, path)
	}
	return f, num, path, err
}

func (w *tableWriter) open() (err error) {
	if w.file, w.num, _, err = w.r.create(manifest.FileTable); err != nil {
		return err
	}
	w.w = sstable.NewWriter(w.file, w.o)
	w.w.KnowBlobs(w.r.blobID)
	return nil
}

// close finishes the open table. Its span ends before end (nil: no bound).
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

func (w *tableWriter) abort() {
	if w.file != nil {
		_ = w.file.Close() // it is removed next
		_ = w.r.stage.Remove(w.r.written[len(w.r.written)-1])
		w.r.written = w.r.written[:len(w.r.written)-1]
		w.w, w.file = nil, nil
	}
}
