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

// A Source is a table or a blob file of a store that is backed up.
type Source struct {
	Sent
	FS vfs.FS // where it is, in Backup.Dir; nil: in Backup.FS

	// Verify reads the whole file and calls each for each of its entries. An error of
	// each ends it. It is nil if no disk can have damaged the file, or reads are verified.
	Verify func(each func() error) error
}

// A Backup is what Write needs to know of a store. The files must stay on disk.
type Backup struct {
	FS          vfs.FS
	Dir         string
	Store       *manifest.Edit // describes the store: adds all tables and all blob files
	Sources     []Source       // these
	Since       *Mark          // nil: nothing
	Interrupted func() error   // says why to stop; nil: go on

	mark *Mark // of the stream up to now
	w    *Writer
}

// Write writes a stream of the files that Since has not; it verifies each before it copies it. It returns a mark of
// what is backed up. After an error, that is what is whole in the stream, in addition to the files of Since.
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
		sent = filesOf(b.Sources)
	case b.Since != nil:
		b.mark.LastSeq = b.Since.LastSeq
		sent = slices.Concat(sent, b.Since.Files())
	}
	b.mark.SetFiles(sent)
	return b.mark, err
}

// checkNumbers refuses an increment with a file that has the number of another one before. Restoring it would damage
// the store before, which readers may use, or which stays if the restore is abandoned. Backups of views, which make
// files of one log, may give such numbers.
func (b *Backup) checkNumbers() error {
	if b.Since == nil {
		return nil
	}
	ids := map[uint64]uint64{}
	for _, f := range b.Since.Files() {
		ids[f.Num] = f.ID
	}
	for _, t := range b.Sources {
		if id, ok := ids[t.Num]; ok && id != t.ID {
			return fmt.Errorf("%w: the writer has not flushed since the backup of the mark, which is of a view as "+
				"this one is: make a full backup, or wait until it has", ErrMismatch)
		}
	}
	return nil
}

func filesOf(sources []Source) (files []File) {
	for _, s := range sources {
		files = append(files, s.File)
	}
	return files
}

// write writes the stream, and returns the files that are whole in it.
func (b *Backup) write(w io.Writer) (sent []File, err error) {
	h := &Header{StoreID: b.Store.StoreID, BackupID: b.mark.BackupID, LastSeq: b.Store.LastSeq,
		HasBlobs: len(b.Store.AddedBlobs) > 0}
	var sources []Source
	for _, s := range b.Sources {
		if b.Since == nil || !b.Since.Has(s.File) {
			sources = append(sources, s)
			h.Files++
			h.Bytes += s.Size
		}
	}
	slices.SortFunc(sources, func(a, b Source) int { return cmp.Compare(a.Num, b.Num) })
	if b.Since != nil {
		h.Parent, h.ParentOffset = b.Since.BackupID, b.Since.Offset
	}
	if b.w, err = NewWriter(w, h); err != nil {
		return nil, err
	}
	for _, s := range sources {
		if err := b.source(s); err != nil {
			return sent, err
		}
		sent = append(sent, s.File)
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

// source verifies a file and writes it.
func (b *Backup) source(s Source) (err error) {
	if err := b.Interrupted(); err != nil {
		return err
	}
	most := 4096 // entries between two looks at whether to go on
	if s.Kind == manifest.FileBlob {
		most = 1 // values are large
	}
	entries := 0
	if s.Verify != nil {
		err = s.Verify(func() error {
			if entries++; entries%most != 0 {
				return nil
			}
			return b.Interrupted()
		})
	}
	if err != nil {
		return damaged(err)
	}
	name := manifest.FileName(s.Kind, s.Num)
	from := b.FS
	if s.FS != nil {
		from = s.FS
	}
	f, err := from.Open(filepath.Join(b.Dir, name))
	if err != nil {
		return damaged(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := b.w.File(s.Kind, s.File, s.Size); err != nil {
		return err
	}
	return b.copy(f, name, s.Size)
}

func (b *Backup) copy(f vfs.ReadFile, name string, size int64) error {
	part := int64(MaxPayload)
	if p, ok := f.(vfs.PartReader); ok { // each read is a request
		part = max(part, int64(p.PartSize()))
	}
	buf := make([]byte, min(part, size))
	for at := int64(0); at < size; at += int64(len(buf)) {
		if err := b.Interrupted(); err != nil {
			return err
		}
		buf = buf[:min(int64(len(buf)), size-at)]
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
	there := map[File]Sent{}
	for {
		f, ok, err := in.NextFile()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		there[f.File] = f
	}
	e, err := in.describedStore(check)
	if err != nil {
		return nil, err
	}
	m := &Mark{StoreID: e.StoreID, BackupID: in.header.BackupID, Offset: in.offset, LastSeq: e.LastSeq}
	var files []File
	for _, f := range describedFiles(e) {
		files = append(files, f.File)
		if is, ok := there[f.File]; ok && is != f || !ok && in.header.Parent == 0 {
			err = in.badDescription(fmt.Errorf("%s is not in it as it is described", manifest.FileName(f.Kind, f.Num)))
		}
	}
	for i := range e.Added {
		m.LastSeq = max(m.LastSeq, e.Added[i].Table.LargestSeq)
	}
	m.SetFiles(files)
	return m, err
}

// describedFiles returns all files of the store that a description adds.
func describedFiles(e *manifest.Edit) (files []Sent) {
	for i := range e.Added {
		t := &e.Added[i].Table
		files = append(files, Sent{File{t.Num, t.ID}, manifest.FileTable, t.Size})
	}
	for _, b := range e.AddedBlobs {
		files = append(files, Sent{File{b.Num, b.ID}, manifest.FileBlob, b.Size})
	}
	return files
}

// errNotStarted says that a reader has nothing of a stream's beginning.
func errNotStarted() error {
	return &base.CorruptionError{File: streamName, Offset: 0, What: "this is not the beginning of a backup"}
}

// badDescription is the error of a stream with whole bytes that mean nothing.
func (r *Reader) badDescription(cause error) error {
	return &base.CorruptionError{File: streamName, Offset: r.offset, What: "the description of the store", Cause: cause}
}

// describedStore decodes the description at the end of the stream, once NextFile has returned false without an error.
func (r *Reader) describedStore(check func(*manifest.Edit) error) (*manifest.Edit, error) {
	e, err := manifest.DecodeEdit(r.desc)
	if errors.Is(err, manifest.ErrNewerFormat) {
		return nil, err
	}
	other := r.whole && err == nil && e.StoreID != r.header.StoreID
	if err == nil && (len(e.Deleted)+len(e.DeletedBlobs) > 0 || e.StoreID == 0 || other) {
		err = errors.New("it is that of no store, or of another one")
	}
	if err == nil {
		nums, files := map[uint64]bool{}, describedFiles(e)
		for _, f := range files {
			nums[f.Num] = true
		}
		if len(nums) < len(files) {
			err = errors.New("a file is in it twice")
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
