package remote

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// A reading is how far a reader has read. Its files in memory grow as those of the writer do,
// under whoever has them open.
type reading struct {
	fresh bool   // the list of files has just been read for the first time
	due   bool   // the logs have not been read since: who takes the store over reads them otherwise
	log   uint64 // slot of the next entry of the logs; 0: at the list's first
	files map[string]*growing
}

// A growing file is one in memory that is the beginning of the writer's.
type growing struct {
	w    vfs.WriteFile
	size int64
}

// load reads the list of files, unless that was done: a request for a listing, and one for what
// it finds. Where there is no store, there is nothing to list.
func (f *FS) load() error {
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	return f.loadOnce()
}

// loadOnce is load for who refreshes. A writer's files are its own.
func (f *FS) loadOnce() error {
	if f.newer != nil || f.asWriter() != nil {
		return nil
	}
	if err := f.small.MkdirAll(f.o.Root); err != nil {
		return err
	}
	end, err := f.manifests.Newest(f.ctx)
	if err != nil {
		return err
	}
	f.end = end
	if end.Data.Slot == 0 {
		return nil // whoever comes later asks again
	}
	f.newer, f.reading.fresh = f.manifests.Follow(end.Last), true
	f.newer.kept = f.o.Grace
	return f.accept(end.Data)
}

// refresh reads what is new, for a reader: one request for the list of files and one for the
// logs, and one more for each entry that is new.
func (f *FS) refresh() error {
	if f.asWriter() != nil {
		return nil
	}
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	if err := f.loadOnce(); err != nil || f.newer == nil {
		return err
	}
	if f.reading.fresh {
		f.reading.fresh, f.reading.due = false, true
		return nil
	}
	e, found, err := f.newer.Poll(f.ctx)
	if err == nil && found {
		err = f.accept(e)
	}
	if err != nil {
		return err
	}
	return f.readLogs()
}

// LookAgain makes the next refresh look for the newest list of files by a listing, a request more. A reader that finds
// writes missing in the logs has to: the next list may have been deleted with a newer one behind it, which no clock
// tells of a machine that was suspended.
func (f *FS) LookAgain() {
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	if f.newer != nil {
		f.newer.polls = pollsPerList
	}
}

// needLogs reads the logs if nobody has since the list of files was read.
func (f *FS) needLogs() error {
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	if !f.reading.due || f.asWriter() != nil {
		return nil
	}
	return f.readLogs()
}

// accept makes the files those of an entry.
func (f *FS) accept(e Entry) error {
	f.logs.belongTo(f.manifests.Store())
	l, num, err := decodeFileList(e.Body)
	if errors.Is(err, ErrNewerFormat) {
		return fmt.Errorf("%s: %w", f.manifests.key(e.Slot), err)
	}
	if err != nil {
		return &base.CorruptionError{File: f.manifests.key(e.Slot), Offset: -1, What: "the list of files", Cause: err}
	}
	// The manifest comes before CURRENT names it.
	if err := f.writeSmall(manifest.FileName(manifest.FileManifest, num), l.manifest); err != nil {
		return err
	}
	if err := f.writeSmall(manifest.CurrentName, []byte(l.current)); err != nil {
		return err
	}
	names, err := f.small.List(f.o.Root)
	if err != nil {
		return err
	}
	for _, name := range names {
		kind, n := manifest.ParseFileName(name)
		gone := kind == manifest.FileManifest && n != num || kind == manifest.FileWAL && obsolete(l.logs, n)
		if gone {
			delete(f.reading.files, name)
			if err := f.small.Remove(f.path(kind, n)); err != nil {
				return err
			}
		}
	}
	for _, n := range l.logs { // those without an entry as well
		if err := f.growSmall(manifest.FileName(manifest.FileWAL, n), nil, 0); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = l
	f.reading.log = max(f.reading.log, l.logStart, 1)
	return nil
}

// obsolete reports whether a log is not among those of a list, nor came after it.
func obsolete(logs []uint64, num uint64) bool {
	_, found := slices.BinarySearch(logs, num)
	return !found && len(logs) > 0 && num < logs[len(logs)-1]
}

// readLogs reads what the logs have grown by.
func (f *FS) readLogs() error {
	for {
		e, err := f.logs.Get(f.ctx, f.reading.log)
		if errors.Is(err, objstore.ErrNotExist) {
			f.reading.due = false
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.readEntry(e); err != nil {
			return err
		}
		f.reading.log++
	}
}

// readEntry adds what an entry has to the logs.
func (f *FS) readEntry(e Entry) error {
	if e.Fence {
		return nil
	}
	key := f.logs.key(e.Slot)
	return decodeChunks(e.Body, key, func(c chunk) error {
		if logs := f.list.logs; len(logs) > 0 && c.log < logs[0] {
			return nil
		}
		if err := f.growSmall(manifest.FileName(manifest.FileWAL, c.log), c.data, int64(c.offset)); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
}

// writeSmall makes data the contents of a file in memory. If that only adds to what was there, who
// has the file open sees it grow.
func (f *FS) writeSmall(name string, data []byte) error {
	if g := f.reading.files[name]; g != nil && g.size <= int64(len(data)) {
		old, err := readAll(f.small, f.join(name))
		if err != nil {
			return err
		}
		if bytes.HasPrefix(data, old) {
			return f.growSmall(name, data[len(old):], int64(len(old)))
		}
	}
	w, err := f.small.Create(f.join(name))
	if err != nil {
		return err
	}
	f.remember(name, &growing{w: w})
	return f.growSmall(name, data, 0)
}

// growSmall adds to a file in memory what begins at an offset of it.
func (f *FS) growSmall(name string, data []byte, offset int64) error {
	g := f.reading.files[name]
	if g == nil {
		w, err := f.small.Create(f.join(name))
		if err != nil {
			return err
		}
		g = &growing{w: w}
		f.remember(name, g)
	}
	if offset > g.size {
		return fmt.Errorf("siftkv: %s has %d bytes, and goes on at %d: bytes between are missing", name, g.size, offset)
	}
	if n := g.size - offset; n < int64(len(data)) {
		if _, err := g.w.Write(data[n:]); err != nil {
			return err
		}
		g.size = offset + int64(len(data))
	}
	return nil
}

func (f *FS) remember(name string, g *growing) {
	if f.reading.files == nil {
		f.reading.files = map[string]*growing{}
	}
	f.reading.files[name] = g
}
