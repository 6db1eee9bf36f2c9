package kv

import (
	"cmp"
	"context"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A BackupMark says what has been backed up, so that the next backup holds what came
// since. The zero value is nothing: a backup since then is a full one. Keep it with
// the backup; VerifyBackup makes it anew from a stream.
type BackupMark struct{ m *backup.Mark }

var (
	_ encoding.BinaryMarshaler   = BackupMark{}
	_ encoding.BinaryUnmarshaler = (*BackupMark)(nil)
)

// IsZero reports whether nothing has been backed up.
func (m BackupMark) IsZero() bool { return m.m == nil }

// MarshalBinary encodes the mark: 16 bytes for each file of the store, and a few. The
// zero mark has none.
func (m BackupMark) MarshalBinary() ([]byte, error) {
	if m.m == nil {
		return nil, nil
	}
	return m.m.Append(nil), nil
}

// UnmarshalBinary decodes what MarshalBinary has encoded.
func (m *BackupMark) UnmarshalBinary(b []byte) error {
	if len(b) == 0 {
		m.m = nil
		return nil
	}
	decoded, err := backup.DecodeMark(b)
	if err != nil {
		return err
	}
	m.m = decoded
	return nil
}

// String describes the mark in a line.
func (m BackupMark) String() string {
	if m.m == nil {
		return "nothing"
	}
	return fmt.Sprintf("backup %016x of store %016x up to offset %d: %d files, sequence %d", m.m.BackupID,
		m.m.StoreID, m.m.Offset, len(m.m.Files()), m.m.LastSeq)
}

// Backup writes the store as it is now to w, for Restore: everything that was written
// before the call is in it, and the whole is one moment of the store. Reads and writes
// go on meanwhile. It returns a mark for the next backup: since that mark, a backup
// holds the files that came to the store and none of those that it had. A zero mark
// makes a full one.
//
// The files are the store's own, as they are; each is verified before it is copied,
// so that damage ends a backup and does not get into it.
//
// After an error, such as that of w, the mark that comes with it is still good: it
// tells what w has been given whole. A further backup since that mark goes on there,
// with the store as it is by then. Restore then takes what there is of the first
// stream, and the second.
func (d *DB) Backup(w io.Writer, since BackupMark) (BackupMark, error) {
	return d.BackupContext(context.Background(), w, since)
}

// BackupContext is Backup for a caller who waits no longer than ctx lasts. The error
// then matches ctx.Err(). A write to w that has begun is waited for.
func (d *DB) BackupContext(ctx context.Context, w io.Writer, since BackupMark) (BackupMark, error) {
	if since.m != nil && since.m.StoreID != d.storeID {
		return since, fmt.Errorf("%w: the mark is of store %016x, and this is store %016x", ErrBackupMismatch,
			since.m.StoreID, d.storeID)
	}
	if err := d.FlushContext(ctx); err != nil {
		return since, err
	}
	v, e := d.pinVersion()
	if v == nil {
		return since, ErrClosed
	}
	defer d.unpinVersion(v)
	b := &backupRun{d: d, ctx: ctx, id: rand.Uint64() | 1, since: since.m}
	b.choose(v)
	err := b.write(w, e)
	return b.mark(since, v, err == nil), err
}

// pinVersion keeps the current version's tables on disk until unpinVersion, and
// describes it. It returns nil if the store is closed.
func (d *DB) pinVersion() (*version, *manifest.Edit) {
	d.manifestMu.Lock()
	defer d.manifestMu.Unlock()
	d.mu.Lock()
	v := d.current
	if v != nil {
		v.refs++
	}
	d.mu.Unlock()
	if v == nil {
		return nil, nil
	}
	e := d.snapshotEdit(v)
	e.LogNum = 0 // no log goes with it
	return v, e
}

func (d *DB) unpinVersion(v *version) {
	d.mu.Lock()
	d.unrefVersion(v)
	d.mu.Unlock()
	if d.closed.Load() {
		if err := d.cleaner.drain(d); err != nil {
			d.log.Warn("a table could not be closed", "error", err)
		}
	}
}

// A backupRun is one call of Backup.
type backupRun struct {
	d     *DB
	ctx   context.Context
	id    uint64
	since *backup.Mark // nil: nothing
	files []*table     // to write, ascending by number

	w    *backup.Writer
	sent []backup.File // whole in the stream
}

// fileOf names a table in a backup.
func fileOf(t *table) backup.File { return backup.File{Num: t.Num, ID: t.ID} }

// choose picks the tables that the mark has not.
func (b *backupRun) choose(v *version) {
	v.all(func(_ int, t *table) {
		if b.since == nil || !b.since.Has(fileOf(t)) {
			b.files = append(b.files, t)
		}
	})
	slices.SortFunc(b.files, func(a, b *table) int { return cmp.Compare(a.Num, b.Num) })
}

func (b *backupRun) write(w io.Writer, e *manifest.Edit) (err error) {
	h := &backup.Header{StoreID: b.d.storeID, BackupID: b.id, Files: uint64(len(b.files)), LastSeq: e.LastSeq}
	if b.since != nil {
		h.Parent, h.ParentOffset = b.since.BackupID, b.since.Offset
	}
	for _, t := range b.files {
		h.Bytes += t.Size
	}
	if b.w, err = backup.NewWriter(w, h); err != nil {
		return err
	}
	for _, t := range b.files {
		if err := b.table(t); err != nil {
			return err
		}
		b.sent = append(b.sent, fileOf(t))
	}
	return b.w.End(e.Append(nil))
}

// table verifies a table and writes its file.
func (b *backupRun) table(t *table) (err error) {
	if err := b.interrupted(); err != nil {
		return err
	}
	r, err := b.d.openTable(t)
	if err != nil {
		return err
	}
	entries := 0
	err = r.VerifyEach(func(base.InternalKey, []byte) error {
		if entries++; entries%4096 != 0 {
			return nil
		}
		return b.interrupted()
	})
	if errors.Is(err, ErrCorruption) {
		err = fmt.Errorf("siftkv: a backup ends at a damaged file: %w", err)
	}
	if err != nil {
		return err
	}
	f, err := b.d.fs.Open(b.d.path(manifest.FileTable, t.Num))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := b.w.File(fileOf(t), t.Size); err != nil {
		return err
	}
	buf := make([]byte, min(backup.MaxPayload, t.Size))
	for at := int64(0); at < t.Size; at += int64(len(buf)) {
		if err := b.interrupted(); err != nil {
			return err
		}
		buf = buf[:min(int64(len(buf)), t.Size-at)]
		if n, err := f.ReadAt(buf, at); n < len(buf) {
			return fmt.Errorf("siftkv: backup: read %s at offset %d: %w", t.name(), at, err)
		}
		if err := b.w.Data(buf); err != nil {
			return err
		}
	}
	return nil
}

func (b *backupRun) interrupted() error {
	if b.d.closed.Load() {
		return ErrClosed
	}
	if b.ctx.Err() != nil {
		return givenUp(b.ctx, "a backup was broken off")
	}
	return nil
}

// mark returns what has been backed up: all of v, or of an unfinished stream what is
// whole in it beside what was there since.
func (b *backupRun) mark(since BackupMark, v *version, whole bool) BackupMark {
	if b.w == nil || b.w.Whole() == 0 {
		return since
	}
	m := &backup.Mark{StoreID: b.d.storeID, BackupID: b.id, Offset: b.w.Whole()}
	files := b.sent
	if whole {
		m.LastSeq = v.lastSeq
		files = nil
		v.all(func(_ int, t *table) { files = append(files, fileOf(t)) })
	} else if b.since != nil {
		m.LastSeq = b.since.LastSeq
		files = slices.Concat(files, b.since.Files())
	}
	m.SetFiles(files)
	return BackupMark{m}
}

// VerifyBackup reads a stream that Backup has written, from its beginning, and checks
// all of it. It returns the mark that Backup returned.
func VerifyBackup(r io.Reader) (BackupMark, error) {
	in, err := backup.NewReader(r)
	if err != nil {
		return BackupMark{}, err
	}
	if !in.Started() {
		return BackupMark{}, errNoBackup()
	}
	sizes := map[backup.File]int64{}
	for {
		f, size, ok, err := in.NextFile()
		if err != nil {
			return BackupMark{}, err
		}
		if !ok {
			break
		}
		sizes[f] = size
	}
	e, v, err := describedStore(in)
	if err != nil {
		return BackupMark{}, err
	}
	m := &backup.Mark{StoreID: e.StoreID, BackupID: in.Header().BackupID, Offset: in.Offset(), LastSeq: v.lastSeq}
	var files []backup.File
	v.all(func(_ int, t *table) {
		f := fileOf(t)
		files = append(files, f)
		if size, ok := sizes[f]; ok && size != t.Size || !ok && in.Header().Parent == 0 {
			err = backupDamage(in, fmt.Errorf("table %d is not in it as it is described", t.Num))
		}
	})
	m.SetFiles(files)
	return BackupMark{m}, err
}

// errNoBackup says that a reader has nothing of a stream's beginning.
func errNoBackup() error {
	return &CorruptionError{File: "the backup stream", Offset: 0, What: "this is not the beginning of a backup"}
}

// backupDamage is an error of a stream whose bytes are whole and mean nothing.
func backupDamage(in *backup.Reader, cause error) error {
	return &CorruptionError{File: "the backup stream", Offset: in.Offset(), What: "the description of the store",
		Cause: cause}
}

// describedStore returns the description at the end of a stream, and the version that
// it describes.
func describedStore(in *backup.Reader) (*manifest.Edit, *version, error) {
	e, err := manifest.DecodeEdit(in.Description())
	if errors.Is(err, ErrNewerFormat) {
		return nil, nil, err
	}
	if err == nil && (len(e.Deleted) > 0 || e.StoreID == 0 || in.Started() && e.StoreID != in.Header().StoreID) {
		err = errors.New("it is that of no store, or of another one")
	}
	nums := map[uint64]bool{}
	if err == nil {
		for i := range e.Added {
			nums[e.Added[i].Table.Num] = true
		}
		if len(nums) < len(e.Added) {
			err = errors.New("a table is in it twice")
		}
	}
	var v *version
	if err == nil {
		v, err = (&version{}).apply(e)
	}
	if err != nil {
		return nil, nil, backupDamage(in, err)
	}
	return e, v, nil
}
