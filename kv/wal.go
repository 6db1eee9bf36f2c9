package kv

import (
	"errors"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/wal"
)

// A logFile is a WAL that is written, or was written and may have to be synced.
// Its file stays open when it has ended, so that a later commit that must be durable
// can make the writes before it durable too. A log that failed to write or to sync stays
// failed: its writer sees to that.
type logFile struct {
	num uint64
	w   *wal.Writer
}

// createLog creates the WAL with this number. When it returns, its name is
// durable.
func (d *DB) createLog(num uint64) (*logFile, error) {
	f, err := d.fs.Create(d.path(manifest.FileWAL, num))
	if err != nil {
		return nil, err
	}
	l := &logFile{num: num, w: wal.NewWriter(f, num, wal.Options{})}
	if err := d.fs.SyncDir(d.dir); err != nil {
		d.discardLog(l)
		return nil, err
	}
	return l, nil
}

// discardLog closes and removes a log that nobody has written to. If it stays, it is
// an empty log that recovery passes over.
func (d *DB) discardLog(l *logFile) {
	err := l.w.CloseFile()
	if err = errors.Join(err, d.fs.Remove(d.path(manifest.FileWAL, l.num))); err != nil {
		d.log.Warn("an unused log could not be removed", "log", l.num, "error", err)
	}
}
