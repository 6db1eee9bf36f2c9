package tablemeta

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Writer writes the tables of a flush or compaction: one after the other, each cut between two user keys, so that all
// versions of a key are in one table. Range tombstones are cut where the tables are. Separated values go into blob
// files as they come, without regard to where tables are cut. Call order: Add* Finish, or Abort at any time.
type Writer struct {
	FS         vfs.FS
	Dir        string
	Log        *slog.Logger
	NewNum     func() uint64                       // returns a number that no file has
	Wrap       func(f vfs.WriteFile) vfs.WriteFile // returns what the writes of a new file go through
	Options    *sstable.WriterOptions
	TargetSize int64         // 0: one table
	Tombstones *rangedel.Set // those to write
	Separation Separation

	// Rewrite, unless nil, returns what is written in the place of an entry with a handle, valid until the next
	// call: the entry, or one that has its value.
	Rewrite func(k base.InternalKey, value []byte) (base.InternalKey, []byte, error)

	// Hidden, unless nil, returns the bytes that the newest versions of keys in older tables take in blob files.
	Hidden func(keys [][]byte) uint64

	tally  tombstoneTally
	out    *sstable.Writer // nil: no table is open
	file   vfs.WriteFile
	num    uint64
	start  []byte // the open table's span begins here; nil: at the first key
	tables []manifest.Table
	blobs  blobFiles
	names  []string // of all files, and the open ones
}

// Add appends an entry. It cuts before the entry if range tombstones alone have filled a table.
func (w *Writer) Add(k base.InternalKey, value []byte) error {
	if w.TargetSize > 0 && !w.Tombstones.Empty() {
		if w.tally.pass(w.Tombstones, k.User) >= w.mostTombstones() {
			if err := w.Cut(k.User); err != nil {
				return err
			}
		}
		w.tally.add(k.User)
	}
	if w.out == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	if w.Rewrite != nil && k.Kind().Separated() {
		var err error
		if k, value, err = w.Rewrite(k, value); err != nil {
			return err
		}
	}
	if w.separates(k.Kind(), value) {
		var err error
		if k, value, err = w.separate(k, value); err != nil {
			return err
		}
	} else if k.Kind().Separated() && w.Separation.Candidates != nil {
		var err error
		if value, err = w.relocate(k, value); err != nil {
			return err
		}
	}
	return w.out.Add(k, value)
}

// Full reports whether the open table has reached its size, or refers to as much as it should, so that it should be
// cut before the next user key.
func (w *Writer) Full() bool {
	return w.TargetSize > 0 && w.out != nil && (w.out.Size() >= w.TargetSize || w.out.Referred() >= maxReferred)
}

// mostTombstones is how many bytes of range tombstones fill a table.
func (w *Writer) mostTombstones() int64 { return min(w.TargetSize, maxTombstoneBytes) }

// Cut closes the open table; the next begins at key.
func (w *Writer) Cut(key []byte) error {
	if err := w.close(key); err != nil {
		return err
	}
	w.start = bytes.Clone(key)
	return nil
}

func (w *Writer) open() error {
	num := w.NewNum()
	name := filepath.Join(w.Dir, manifest.FileName(manifest.FileTable, num))
	f, err := w.FS.Create(name)
	if err != nil {
		return err
	}
	w.file, w.num, w.names = w.Wrap(f), num, append(w.names, name)
	w.out = sstable.NewWriter(w.file, w.Options)
	w.out.KnowBlobs(w.blobID)
	return nil
}

// close finishes the open table. Its span ends before end (nil: no bound). Tombstones
// after its last entry that are too many for it go into tables of their own.
func (w *Writer) close(end []byte) error {
	tombs := w.Tombstones.Clip(nil, w.start, end)
	for w.TargetSize > 0 && len(tombs) > 0 {
		n := w.tally.cut(tombs, w.mostTombstones())
		if n == len(tombs) {
			break
		}
		if err := w.finishTable(tombs[:n]); err != nil {
			return err
		}
		tombs = tombs[n:]
	}
	return w.finishTable(tombs)
}

// finishTable finishes the open table, with its tombstones. There is none if it would be empty.
func (w *Writer) finishTable(tombs []rangedel.Tombstone) error {
	w.tally.bytes, w.tally.any = 0, false
	if w.out == nil {
		if len(tombs) == 0 {
			return nil
		}
		if err := w.open(); err != nil {
			return err
		}
	}
	for _, t := range tombs {
		if err := w.out.AddTombstone(t); err != nil {
			return err
		}
	}
	info, err := w.out.Finish()
	if err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	if p := &info.Properties; p.FilterPolicy != "" && p.FilterFamily == "" && !p.PrefixOnly {
		w.Log.Warn("no filter could be built: lookups read the file whether it has their keys or not",
			"file", manifest.FileName(manifest.FileTable, w.num), "filter", p.FilterPolicy, "entries", p.Entries)
	}
	t := Of(w.num, info, tombs)
	if w.Hidden != nil {
		t.Garbage.HiddenBytes = w.out.Keys().Estimate(w.Hidden)
	}
	err = w.file.Close()
	w.out, w.file = nil, nil
	w.tables = append(w.tables, t)
	return err
}

// Finish closes the last table and the last blob file. All are durable once the directory is synced: until then, and
// as long as no version lists them, Abort still removes them.
func (w *Writer) Finish() ([]manifest.Table, error) {
	err := w.close(nil)
	if err == nil {
		err = w.closeBlob()
	}
	return w.tables, err
}

// Abort closes and removes what was written: no version will list it.
func (w *Writer) Abort() {
	for _, f := range []vfs.WriteFile{w.file, w.blobs.file} {
		if f != nil {
			_ = f.Close() // it is removed next
		}
	}
	for _, name := range w.names {
		if err := w.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.Log.Warn("an unfinished file could not be removed", "file", name, "error", err)
		}
	}
}
