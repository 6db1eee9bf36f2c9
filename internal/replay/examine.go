package replay

import (
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/wal"
)

// neverUsed reports whether a log was prepared and never used, and could not be removed, or was there again after a
// power cut. Such a log is empty, and nothing is missing. The next log that is not empty goes on with the write after
// LastSeq, or the store was closed at LastSeq. Neither can be said of a log that has lost what it held: that was one
// write at least.
func (p *Replayer) neverUsed(num uint64, later []uint64, closed base.SeqNum) (bool, error) {
	c, err := p.examineLog(num)
	if err != nil || c.size > 0 {
		return false, err
	}
	for _, num := range later {
		if c, err = p.examineLog(num); err != nil || c.size > 0 {
			return c.firstSeq == p.LastSeq+1, err
		}
	}
	return closed > 0 && closed == p.LastSeq, nil
}

// dropLogs drops the logs that come after one that was not closed cleanly, and may have
// lost its end. It returns an error if the mode, or what is in them, forbids that.
//
// Empty logs count for nothing: a crash leaves one that was just created. In PointInTime, the others must never have
// been synced: then nothing was promised about the writes that they hold. If one was, so was the log before it, and no
// crash explains that it has lost its end.
func (p *Replayer) dropLogs(torn uint64, later []uint64) error {
	damage := func(format string, args ...any) error {
		return &base.CorruptionError{File: manifest.Path(p.Dir, manifest.FileWAL, torn), Offset: -1, Hint: p.Hint,
			What: fmt.Sprintf("the log "+format, args...)}
	}
	if p.Mode == Absolute {
		return damage("was not closed cleanly: writes that were not synced may be missing (recovery mode Absolute)")
	}
	for _, num := range later {
		name := manifest.FileName(manifest.FileWAL, num)
		c, err := p.examineLog(num)
		switch {
		case err != nil:
			return err
		case !c.holdsAny:
		case c.syncedTo > 0:
			return damage("has lost its end, although %s, which came later, was synced", name)
		case p.Mode == TolerateTornTail:
			return damage("has lost its end, although %s came later (recovery mode TolerateTornTail)", name)
		default:
			p.Dropped(Dropped{File: manifest.Path(p.Dir, manifest.FileWAL, num), Bytes: c.size,
				Reason: manifest.FileName(manifest.FileWAL, torn) + ", which came before, has lost its end"})
		}
	}
	return nil
}

func (p *Replayer) readLog(num uint64, f func(r *wal.Reader, name string, size int64) error) (err error) {
	name := manifest.Path(p.Dir, manifest.FileWAL, num)
	file, err := p.FS.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return err
	}
	return f(wal.NewReader(file, name, num), name, size)
}

// logContent is what a look at a log tells.
type logContent struct {
	holdsAny bool  // a record, or what may have been some
	syncedTo int64 // up to where it proves that it had been synced
	size     int64
	firstSeq base.SeqNum // of the first write; 0: it cannot be read

	lastRecord int64 // where the last record that can be read begins
}

func (p *Replayer) examineLog(num uint64) (c logContent, err error) {
	err = p.readLog(num, func(r *wal.Reader, _ string, size int64) error {
		c.size = size
		var err error
		for err == nil {
			var record []byte
			record, err = r.Next()
			if err == nil && !c.holdsAny {
				c.firstSeq = firstSeq(record)
			}
			if err == nil {
				c.holdsAny, c.lastRecord = true, r.Offset()
			}
		}
		// Unless it ends with its header, how it ends does not matter.
		c.holdsAny = c.holdsAny || !errors.Is(err, io.EOF) && size > wal.HeaderSize
		c.syncedTo = r.SyncedTo()
		return nil
	})
	return c, err
}

// firstSeq returns the number of a record's first write; 0 if it is no record.
func firstSeq(record []byte) base.SeqNum {
	r, err := batchrepr.NewReader(record)
	if err != nil {
		return 0
	}
	return r.Seq()
}
