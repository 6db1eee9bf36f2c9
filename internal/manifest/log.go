package manifest

import (
	"errors"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Log is the manifest that edits are appended to. It is not safe for concurrent use.
type Log struct {
	w   *wal.Writer
	f   vfs.WriteFile
	num uint64

	snapshot int64 // bytes of the manifest as it was created
	end      int64 // of the last edit
}

// Create writes a manifest that begins with snapshot, the description of the whole store, and makes it the one in
// force. When it returns, both are durable. After an error the file is gone, unless it may be in force.
func Create(fs vfs.FS, dir string, num uint64, snapshot *Edit) (*Log, error) {
	name := Path(dir, FileManifest, num)
	f, err := fs.Create(name)
	if err != nil {
		return nil, err
	}
	l := &Log{w: wal.NewWriter(f, num), f: f, num: num}
	// The name of the manifest must last before CURRENT may name it.
	if err = l.Append(snapshot); err == nil {
		l.snapshot = l.Size()
		err = fs.SyncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(err, l.Abandon(), fs.Remove(name))
	}
	if err = SetCurrent(fs, dir, num); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Append appends an edit. When it returns, the edit is durable. After an error the log is broken: whether the edit will
// be there on the next start is not known.
func (l *Log) Append(e *Edit) error {
	if err := l.w.Append(e.Append(nil)); err != nil {
		return err
	}
	l.end = l.w.Size()
	return l.w.Sync()
}

// Mark hands a sync mark to the operating system, unless there is one after the last edit: a reader in another process
// knows then that the edits are durable.
func (l *Log) Mark() error { return l.w.Mark() }

// Torn reports whether the last edit is certainly not in the file: its write has failed before its end.
func (l *Log) Torn() bool { return l.w.Torn() }

// Num returns the manifest's file number.
func (l *Log) Num() uint64 { return l.num }

// Size returns the manifest's length in bytes.
func (l *Log) Size() int64 { return l.w.Size() }

// SnapshotSize returns the length that the manifest had when it was created.
func (l *Log) SnapshotSize() int64 { return l.snapshot }

// Close ends the log and closes the file. The end says that the store was closed in
// good order, and nothing of the log is missing.
func (l *Log) Close() error { return l.w.Close() }

// Abandon closes the file and leaves the log as a crash does: without an end. Nothing may be called after it.
func (l *Log) Abandon() error { return l.f.Close() }

// Load calls apply with every edit of the manifest with this number, in order. The last record was never acknowledged
// if a crash cut it off, or lost a part of it: it is left out. Any other damage is an error.
func Load(fs vfs.FS, dir string, num uint64, apply func(*Edit) error) error {
	t, err := OpenTail(fs, dir, num)
	if err != nil {
		return err
	}
	return errors.Join(t.Read(apply), t.Close())
}
