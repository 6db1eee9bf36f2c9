package kv

import (
	"errors"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A logFile is a WAL that is written, or was written and may have to be synced.
// Its file stays open when its writer is done, so that a later commit that must
// be durable can make the writes before it durable too.
type logFile struct {
	num  uint64
	w    *wal.Writer
	file vfs.WriteFile
}

// heldOpen is a file that its writer does not close.
type heldOpen struct{ vfs.WriteFile }

func (heldOpen) Close() error { return nil }

// createLog creates the WAL with this number. When it returns, its name is
// durable.
func (d *DB) createLog(num uint64) (*logFile, error) {
	f, err := d.fs.Create(d.path(manifest.FileWAL, num))
	if err != nil {
		return nil, err
	}
	if err := d.fs.SyncDir(d.dir); err != nil {
		d.discardLog(&logFile{num: num, file: f})
		return nil, err
	}
	return &logFile{num: num, file: f, w: wal.NewWriter(heldOpen{f}, num, wal.Options{})}, nil
}

// discardLog closes and removes a log that nobody has written to. If it stays, it is
// an empty log that recovery passes over.
func (d *DB) discardLog(l *logFile) {
	err := l.close()
	if err = errors.Join(err, d.fs.Remove(d.path(manifest.FileWAL, l.num))); err != nil {
		d.log.Warn("an unused log could not be removed", "log", l.num, "error", err)
	}
}

// end marks the log as whole and hands it to the operating system.
func (l *logFile) end() error { return l.w.Close() }

// close closes the file.
func (l *logFile) close() error { return l.file.Close() }
