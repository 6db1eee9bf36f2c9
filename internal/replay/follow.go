package replay

import (
	"errors"
	"io"
	"io/fs"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Follower reads the manifest and the logs of a store that another process writes. Each call goes on where the last
// one ended. After Restart all is read again. It is not safe for concurrent use.
type Follower struct {
	FS  vfs.FS
	Dir string

	State   *version.ManifestState // what the manifest says, as far as it was read; set by Restart
	Mems    []*memtable.Memtable   // oldest first: writes that are in no table of State
	LastSeq base.SeqNum            // of the last write that was read; the caller adds those of tables

	tail *manifest.Tail
	log  *followedLog
}

// Position returns how far in the store's history the manifest was read. It is zero before the first ReadManifest.
func (f *Follower) Position() manifest.Position {
	if f.tail == nil {
		return manifest.Position{}
	}
	return f.tail.Position()
}

// ReadManifest applies to State what is new in the manifest with this number. Before another manifest is read, the
// caller calls Restart.
func (f *Follower) ReadManifest(num uint64) (err error) {
	if f.tail == nil {
		if f.tail, err = manifest.OpenTail(f.FS, f.Dir, num); err != nil {
			return err
		}
	}
	return f.tail.Read(f.State.Apply)
}

// Restart forgets what was read, and closes the files. The memtables are dropped, except for readers that have them.
func (f *Follower) Restart() error {
	var err error
	if f.tail != nil {
		err = f.tail.Close()
	}
	err = errors.Join(err, f.closeLog())
	for _, m := range f.Mems {
		m.Drop()
	}
	f.tail, f.State, f.Mems, f.LastSeq = nil, version.NewManifestState(), nil, 0
	return err
}

// A followedLog is the log that a follower reads, which may be growing.
type followedLog struct {
	num  uint64
	file vfs.ReadFile
	r    *wal.Reader
	torn bool // a record was read whose values are not whole, and will not be
}

// ReadLogs reads on in the logs whose writes are not in tables, into Mems, each with a copy of p. It ends with the logs
// that were there when it was called, though a writer may go on. It reports whether the logs are ahead of the manifest
// that was read. Then writes are missing between two, or are of a kind that the manifest does not name. An error of
// interrupted, which is called every few records, ends it.
func (f *Follower) ReadLogs(p *Replayer, interrupted func() error) (ahead bool, err error) {
	first := f.State.LogNum
	f.Mems = slices.DeleteFunc(f.Mems, func(m *memtable.Memtable) bool {
		if m.Log < first {
			m.Drop() // it may not have come into a view
		}
		return m.Log < first
	})
	if f.log != nil && f.log.num < first {
		err = f.closeLog()
	}
	if err == nil && f.log == nil {
		f.log, err = f.openLog(first)
	}
	if err != nil || f.log == nil {
		return false, err
	}
	for later := []uint64(nil); ; { // listed once: a writer may make logs faster than they are read
		whole, aheadHere, err := f.readLog(*p, interrupted)
		ahead = ahead || aheadHere
		fresh := later == nil
		if err == nil && whole && fresh {
			later, err = f.logsAfter(f.log.num)
		}
		if err != nil || !whole || len(later) == 0 {
			return ahead, err
		}
		// The writer may have removed the next one again before anything was in it. Then reading goes on in the log
		// that was read. Of one that it has removed since the list, another list says which is next.
		log, err := f.openLog(later[0])
		if !fresh && errors.Is(err, fs.ErrNotExist) {
			later = nil
			continue
		}
		if err != nil || log == nil {
			return ahead, err
		}
		err = f.closeLog()
		if f.log, later = log, later[1:]; err != nil {
			return ahead, err
		}
	}
}

// openLog opens a log. It returns nil if there is none, nor a later one: a new store has its manifest before its log.
func (f *Follower) openLog(num uint64) (*followedLog, error) {
	name := manifest.Path(f.Dir, manifest.FileWAL, num)
	file, err := f.FS.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		later, listErr := f.logsAfter(num)
		if len(later) == 0 {
			return nil, listErr
		}
		return nil, &base.CorruptionError{File: name, Offset: -1, Cause: err, What: "the log is missing, although " +
			manifest.FileName(manifest.FileWAL, later[0]) + ", which came later, is there"}
	}
	if err != nil {
		return nil, err
	}
	return &followedLog{num: num, file: file, r: wal.NewReader(file, name, num)}, nil
}

func (f *Follower) closeLog() error {
	if f.log == nil {
		return nil
	}
	err := f.log.file.Close()
	f.log = nil
	return err
}

// logsAfter returns the numbers of the logs after num, in order.
func (f *Follower) logsAfter(num uint64) (later []uint64, err error) {
	names, err := f.FS.List(f.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if kind, n := manifest.ParseFileName(name); kind == manifest.FileWAL && n > num {
			later = append(later, n)
		}
	}
	slices.Sort(later)
	return later, nil
}

// readLog reads what is new in the log. It reports whether that was the end of a log that was closed cleanly, and
// whether the log is ahead of the manifest.
func (f *Follower) readLog(p Replayer, interrupted func() error) (whole, ahead bool, err error) {
	r := f.log.r
	if f.log.torn {
		return false, false, nil
	}
	if _, err := r.Follow(); err != nil {
		return false, false, err
	}
	name := manifest.Path(f.Dir, manifest.FileWAL, f.log.num)
	p.Log, p.Mems, p.LastSeq = f.log.num, f.Mems, f.LastSeq
	defer p.Close()
	defer func() {
		f.Mems, f.LastSeq = p.Mems, p.LastSeq // of all that was read, whatever ended it
		ahead = p.Gap || p.Used&^f.State.Features != 0
	}()
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := interrupted(); err != nil {
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
