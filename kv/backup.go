package kv

import (
	"context"
	"encoding"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// A BackupMark says what has been backed up, so that the next backup holds what came since. The zero value is nothing:
// a backup since then is a full one. Keep it with the backup; VerifyBackup makes it again from a stream.
type BackupMark struct{ m *backup.Mark }

var (
	_ encoding.BinaryMarshaler   = BackupMark{}
	_ encoding.BinaryUnmarshaler = (*BackupMark)(nil)
)

// IsZero reports whether nothing has been backed up.
func (m BackupMark) IsZero() bool { return m.m == nil }

// MarshalBinary encodes the mark: 16 bytes for each file of the store, and a few. The zero mark has none.
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

// Backup writes the store as it is now to w, for Restore. Everything that was written before the call is in it, and the
// whole is one moment of the store. Reads and writes go on meanwhile. It returns a mark for the next backup. Since that
// mark, a backup holds the files that are new in the store, and none of those that it had. A zero mark makes a full
// one.
//
// The files are the store's own, as they are; each is verified before it is copied,
// so that damage ends a backup and does not get into it.
//
// The backup of a store that is open read-only is that of its view, also while a writer has the store open. Writes that
// only the log has are put into a file of the backup's own, which is made in memory.
//
// After an error, such as that of w, the mark that comes with it is still good: it tells what w has been given whole. A
// further backup since that mark goes on there, with the store as it is by then. Restore then takes what there is of
// the first stream, and the second.
//
// When ctx ends, Backup waits for a write to w that has begun, and returns an error that matches ctx.Err().
func (d *DB) Backup(ctx context.Context, w io.Writer, since BackupMark) (BackupMark, error) {
	if w == nil {
		return since, errNilWriter
	}
	if since.m != nil && since.m.StoreID != d.storeID {
		return since, fmt.Errorf("%w: the mark is of store %016x, and this is store %016x", ErrBackupMismatch,
			since.m.StoreID, d.storeID)
	}
	b := backupJob{d: d, Backup: backup.Backup{Dir: d.dir, Since: since.m,
		Interrupted: func() error { return d.interrupted(ctx, "a backup was broken off") }}}
	if d.opts.ReadOnly {
		return b.writeView(w)
	}
	if err := d.Flush(ctx); err != nil {
		return since, err
	}
	v, e := d.pinVersion()
	if v == nil {
		return since, ErrClosed
	}
	defer d.cleaner.Release(v)
	b.Store, b.FS = e, d.copySource(v)
	b.addFiles(v)
	m, err := b.Write(w)
	return BackupMark{m}, err
}

// A backupJob is one call of Backup.
type backupJob struct {
	backup.Backup
	d *DB
}

// addFiles adds the tables and blob files of a version.
func (b *backupJob) addFiles(v *version.Version) {
	add := func(sent backup.Sent, verify func(each func() error) error) {
		if b.d.opts.Objects != nil { // what is copied is verified
			verify = nil
		}
		b.Sources = append(b.Sources, backup.Source{Sent: sent, Verify: verify})
	}
	for f := range v.Blobs() {
		add(sentBlob(&f.BlobFile), func(each func() error) error { return f.Verify(&b.d.values.Blobs, each) })
	}
	v.All(func(_ int, t *version.Table) {
		add(sentTable(&t.Table), func(each func() error) error {
			r, err := t.Open(&b.d.tables)
			if err != nil {
				return err
			}
			return r.VerifyEach(func(base.InternalKey, []byte) error { return each() })
		})
	})
}

func sentTable(t *manifest.Table) backup.Sent {
	return backup.Sent{File: backup.File{Num: t.Num, ID: t.ID}, Kind: manifest.FileTable, Size: t.Size}
}

func sentBlob(b *manifest.BlobFile) backup.Sent {
	return backup.Sent{File: backup.File{Num: b.Num, ID: b.ID}, Kind: manifest.FileBlob, Size: b.Size}
}

// pinVersion returns the current version and a description of it. The caller releases it by the cleaner, until when its
// files stay. It is nil if the store is closed.
func (d *DB) pinVersion() (*version.Version, *manifest.Edit) {
	d.mu.Lock()
	v := d.current
	if v != nil {
		v.Ref()
	}
	d.mu.Unlock()
	if v == nil {
		return nil, nil
	}
	e := d.snapshotEdit(v)
	e.LogNum = 0 // no log goes with it
	return v, e
}

// VerifyBackup reads a stream that Backup has written, from its beginning, and checks
// all of it. It returns the mark that Backup returned.
func VerifyBackup(r io.Reader) (BackupMark, error) {
	if r == nil {
		return BackupMark{}, errNilReader
	}
	m, err := backup.Verify(r, checkDescription)
	return BackupMark{m}, err
}
