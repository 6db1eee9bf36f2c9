package backup

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Table is a table of a store that is backed up.
type Table struct {
	File
	Size int64
	FS   vfs.FS // where it is, in Backup.Dir; nil: in Backup.FS

	// Verify reads the whole table and calls each for each of its entries. An error of
	// each ends it.
	Verify func(each func() error) error
}

// A Backup is what Write needs to know of a store. The tables must stay on disk.
type Backup struct {
	FS          vfs.FS
	Dir         string
	Store       *manifest.Edit // describes the store: adds all tables
	Tables      []Table
	Since       *Mark        // nil: nothing
	Interrupted func() error // says why to go no further; nil: go on

	mark *Mark // of the stream so far
	w    *Writer
}

// Write writes a stream of the tables that Since has not; it verifies each before it
// copies it. It returns what has been backed up, which after an error is what is whole in
// the stream, beside what was there since.
func (b *Backup) Write(w io.Writer) (*Mark, error) {
	if err := b.checkNumbers(); err != nil {
		return b.Since, err
	}
	b.mark = &Mark{StoreID: b.Store.StoreID, BackupID: rand.Uint64() | 1}
	sent, err := b.write(w)
	if b.w == nil || b.w.Whole() == 0 {
		return b.Since, err
	}
	b.mark.Offset = b.w.Whole()
	switch {
	case err == nil:
		b.mark.LastSeq = b.Store.LastSeq
		sent = filesOf(b.Tables)
	case b.Since != nil:
		b.mark.LastSeq = b.Since.LastSeq
		sent = slices.Concat(sent, b.Since.Files())
	}
	b.mark.SetFiles(sent)
	return b.mark, err
}

// checkNumbers refuses an increment with a file that has the number of another one before: restoring it would
// damage the store before, which readers may have, or somebody who gives the restore up. Such numbers are those of
// files that backups of views have made of one log.
func (b *Backup) checkNumbers() error {
	if b.Since == nil {
		return nil
	}
	ids := map[uint64]uint64{}
	for _, f := range b.Since.Files() {
		ids[f.Num] = f.ID
	}
	for _, t := range b.Tables {
		if id, ok := ids[t.Num]; ok && id != t.ID {
			return fmt.Errorf("%w: the writer has not flushed since the backup of the mark, which is of a view as "+
				"this one is: make a full backup, or wait until it has", ErrMismatch)
		}
	}
	return nil
}

func filesOf(tables []Table) (files []File) {
	for _, t := range tables {
		files = append(files, t.File)
	}
	return files
}

// write writes the stream, and returns the files that are whole in it.
func (b *Backup) write(w io.Writer) (sent []File, err error) {
	h := &Header{StoreID: b.Store.StoreID, BackupID: b.mark.BackupID, LastSeq: b.Store.LastSeq}
	var tables []Table
	for _, t := range b.Tables {
		if b.Since == nil || !b.Since.Has(t.File) {
			tables = append(tables, t)
			h.Files++
			h.Bytes += t.Size
		}
	}
	slices.SortFunc(tables, func(a, b Table) int { return cmp.Compare(a.Num, b.Num) })
	if b.Since != nil {
		h.Parent, h.ParentOffset = b.Since.BackupID, b.Since.Offset
	}
	if b.w, err = NewWriter(w, h); err != nil {
		return nil, err
	}
	for _, t := range tables {
		if err := b.table(t); err != nil {
			return sent, err
		}
		sent = append(sent, t.File)
	}
	return sent, b.w.End(b.Store.Append(nil))
}

// damaged says what becomes of a backup, if err is that of a damaged file.
func damaged(err error) error {
	if errors.Is(err, base.ErrCorruption) {
		return fmt.Errorf("siftkv: a backup ends at a damaged file: %w", err)
	}
	return err
}

// table verifies a table and writes its file.
func (b *Backup) table(t Table) (err error) {
	if err := b.Interrupted(); err != nil {
		return err
	}
	entries := 0
	err = t.Verify(func() error {
		if entries++; entries%4096 != 0 {
			return nil
		}
		return b.Interrupted()
	})
	if err != nil {
		return damaged(err)
	}
	name := manifest.FileName(manifest.FileTable, t.Num)
	from := b.FS
	if t.FS != nil {
		from = t.FS
	}
	f, err := from.Open(filepath.Join(b.Dir, name))
	if err != nil {
		return damaged(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := b.w.File(t.File, t.Size); err != nil {
		return err
	}
	part := int64(MaxPayload)
	if p, ok := f.(vfs.PartReader); ok { // each read is a request
		part = max(part, int64(p.PartSize()))
	}
	buf := make([]byte, min(part, t.Size))
	for at := int64(0); at < t.Size; at += int64(len(buf)) {
		if err := b.Interrupted(); err != nil {
			return err
		}
		buf = buf[:min(int64(len(buf)), t.Size-at)]
		if n, err := f.ReadAt(buf, at); n < len(buf) {
			return fmt.Errorf("siftkv: backup: read %s at offset %d: %w", name, at, err)
		}
		for data := range slices.Chunk(buf, MaxPayload) {
			if err := b.w.Data(data); err != nil {
				return err
			}
		}
	}
	return nil
}

// Verify reads a stream from its beginning and checks all of it. Check refuses a
// description that no store has. It returns the mark that Write returned.
func Verify(r io.Reader, check func(*manifest.Edit) error) (*Mark, error) {
	in, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	if !in.Started() {
		return nil, errNotStarted()
	}
	sizes := map[File]int64{}
	for {
		f, size, ok, err := in.NextFile()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		sizes[f] = size
	}
	e, err := in.describedStore(check)
	if err != nil {
		return nil, err
	}
	m := &Mark{StoreID: e.StoreID, BackupID: in.header.BackupID, Offset: in.offset, LastSeq: e.LastSeq}
	var files []File
	for i := range e.Added {
		t := &e.Added[i].Table
		f := File{Num: t.Num, ID: t.ID}
		files = append(files, f)
		m.LastSeq = max(m.LastSeq, t.LargestSeq)
		if size, ok := sizes[f]; ok && size != t.Size || !ok && in.header.Parent == 0 {
			err = in.badDescription(fmt.Errorf("table %d is not in it as it is described", t.Num))
		}
	}
	m.SetFiles(files)
	return m, err
}

// errNotStarted says that a reader has nothing of a stream's beginning.
func errNotStarted() error {
	return &base.CorruptionError{File: streamName, Offset: 0, What: "this is not the beginning of a backup"}
}

// badDescription is an error of a stream whose bytes are whole and mean nothing.
func (r *Reader) badDescription(cause error) error {
	return &base.CorruptionError{File: streamName, Offset: r.offset, What: "the description of the store", Cause: cause}
}

// describedStore decodes the description at the end of the stream, once NextFile has
// returned false without an error.
func (r *Reader) describedStore(check func(*manifest.Edit) error) (*manifest.Edit, error) {
	e, err := manifest.DecodeEdit(r.desc)
	if errors.Is(err, manifest.ErrNewerFormat) {
		return nil, err
	}
	if err == nil && (len(e.Deleted) > 0 || e.StoreID == 0 || r.whole && e.StoreID != r.header.StoreID) {
		err = errors.New("it is that of no store, or of another one")
	}
	if err == nil {
		nums := map[uint64]bool{}
		for i := range e.Added {
			nums[e.Added[i].Table.Num] = true
		}
		if len(nums) < len(e.Added) {
			err = errors.New("a table is in it twice")
		}
	}
	if err == nil {
		err = check(e)
	}
	if err != nil {
		return nil, r.badDescription(err)
	}
	return e, nil
}
