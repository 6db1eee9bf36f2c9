package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A followedLog is the log that a follower reads, which may be growing.
type followedLog struct {
	num  uint64
	file vfs.ReadFile
	r    *wal.Reader
	torn bool // a record was read whose values are not whole, and will not be
}

// readLogs reads on in the logs whose writes are not in tables, into memtables. These
// writes are invisible until the next state. It reports whether the logs are ahead of
// the manifest that was read. Then writes are missing between two, or are of a kind
// that the manifest does not name.
func (f *follower) readLogs(ctx context.Context) (ahead bool, err error) {
	first := f.state.LogNum
	kept := f.mems[:0:0]
	for _, m := range f.mems {
		if m.Log >= first {
			kept = append(kept, m)
		} else {
			m.Drop() // it may not have come into a view
		}
	}
	f.mems = kept
	if f.log != nil && f.log.num < first {
		if err := f.closeLog(); err != nil {
			return false, err
		}
	}
	if f.log == nil {
		if f.log, err = f.openLog(first); err != nil || f.log == nil {
			return false, err
		}
	}
	for {
		whole, aheadHere, err := f.readLog(ctx)
		ahead = ahead || aheadHere
		if err != nil || !whole {
			return ahead, err
		}
		next, err := f.nextLog(f.log.num)
		if err != nil || next == 0 {
			return ahead, err
		}
		// The writer may have removed the next one again before anything was in it. Then
		// reading goes on in the log that was read.
		log, err := f.openLog(next)
		if err != nil || log == nil {
			return ahead, err
		}
		err = f.closeLog()
		f.log = log
		if err != nil {
			return ahead, err
		}
	}
}

// openLog opens a log. It returns nil if there is none, nor a later one: a new
// store has its manifest before its log.
func (f *follower) openLog(num uint64) (*followedLog, error) {
	name := manifest.Path(f.d.dir, manifest.FileWAL, num)
	file, err := f.d.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		later, listErr := f.nextLog(num)
		if later == 0 {
			return nil, listErr
		}
		return nil, &CorruptionError{File: name, Offset: -1, Cause: err,
			What: fmt.Sprintf("the log is missing, although %s, which came later, is there",
				manifest.FileName(manifest.FileWAL, later))}
	}
	if err != nil {
		return nil, err
	}
	return &followedLog{num: num, file: file, r: wal.NewReader(file, name, num)}, nil
}

func (f *follower) closeLog() error {
	if f.log == nil {
		return nil
	}
	err := f.log.file.Close()
	f.log = nil
	return err
}

// nextLog returns the number of the first log after num; 0 if there is none.
func (f *follower) nextLog(num uint64) (next uint64, err error) {
	names, err := f.d.fs.List(f.d.dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		kind, n := manifest.ParseFileName(name)
		if kind == manifest.FileWAL && n > num && (next == 0 || n < next) {
			next = n
		}
	}
	return next, nil
}

// readLog reads what is new in the log. It reports whether that was the end of a log
// that was closed cleanly, and whether the log is ahead of the manifest.
func (f *follower) readLog(ctx context.Context) (whole, ahead bool, err error) {
	r := f.log.r
	if f.log.torn {
		return false, false, nil
	}
	if _, err := r.Follow(); err != nil {
		return false, false, err
	}
	name := manifest.Path(f.d.dir, manifest.FileWAL, f.log.num)
	p := f.d.replayer()
	p.Log, p.Mems, p.LastSeq, p.Combine = f.log.num, f.mems, f.lastSeq, f.operands.EntryFunc()
	defer p.Close()
	defer func() {
		f.mems, f.lastSeq = p.Mems, p.LastSeq // of all that was read, whatever ended it
		ahead = p.Gap || p.Used&^f.state.Features != 0
	}()
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := f.interrupted(ctx); err != nil {
				return false, false, err
			}
		}
		record, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return r.Clean(), false, nil
		case r.CrashExplains(err):
			return false, false, nil // a write that is under way, or was when the writer died
		case err != nil:
			return false, false, err
		}
		if err := p.Record(r, name, record); err != nil {
			if f.log.torn = p.MayEndAt(r, f.log.num, err); f.log.torn {
				err = nil // the writer's machine lost power, and the store was not recovered since
			}
			return false, false, err
		}
	}
}
