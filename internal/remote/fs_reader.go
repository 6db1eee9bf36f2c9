package remote

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A growing file is one in memory that is the beginning of the writer's.
type growing struct {
	w    vfs.WriteFile
	size int64
}

// take makes the files those of a state, which is later than what was read before. After an error they may be a part
// of it.
func (f *FS) take(st *filelist.State) error {
	if st.List != nil && st.Slot > f.at.List {
		if err := f.accept(st.List, st.ManifestNum); err != nil {
			return err
		}
		f.at.List, f.at.Files = st.Slot, st.List
	}
	for b, err := range st.Data {
		if err != nil {
			return err
		}
		for _, c := range b.Chunks {
			if logs := f.list.Logs; len(logs) > 0 && c.Log < logs[0] {
				continue
			}
			if err := f.growSmall(manifest.FileName(manifest.FileWAL, c.Log), c.Data, int64(c.Offset)); err != nil {
				return &base.CorruptionError{File: f.seq.Key(b.Slot), Offset: sequence.HeaderSize, Cause: err,
					What: "bytes of a log"}
			}
		}
	}
	return nil
}

// accept makes the files those of a list.
func (f *FS) accept(l *filelist.List, num uint64) error {
	// The manifest comes before CURRENT names it.
	if err := f.writeSmall(manifest.FileName(manifest.FileManifest, num), l.Manifest); err != nil {
		return err
	}
	if err := f.writeSmall(manifest.CurrentName, []byte(l.Current)); err != nil {
		return err
	}
	names, err := f.small.List(objectdir.Root)
	if err != nil {
		return err
	}
	for _, name := range names {
		kind, n := manifest.ParseFileName(name)
		_, slot := l.SlotFiles[manifest.SlotOf(name)]
		gone := kind == manifest.FileManifest && n != num || kind == manifest.FileWAL && obsolete(l.Logs, n) ||
			kind == manifest.FileSlot && !slot
		if gone {
			delete(f.growing, name)
			if err := f.small.Remove(f.join(name)); err != nil {
				return err
			}
		}
	}
	for slot, text := range l.SlotFiles {
		if err := vfs.ReplaceFile(f.small, f.join(manifest.SlotName(slot)), []byte(text)); err != nil {
			return err
		}
	}
	for _, n := range l.Logs { // those without an entry as well
		if err := f.growSmall(manifest.FileName(manifest.FileWAL, n), nil, 0); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = *l
	return nil
}

// obsolete reports whether a log is not among those of a list, nor came after it.
func obsolete(logs []uint64, num uint64) bool {
	_, found := slices.BinarySearch(logs, num)
	return !found && len(logs) > 0 && num < logs[len(logs)-1]
}

// writeSmall makes data the contents of a file in memory. If that only adds to what was there, open handles see the
// file grow.
func (f *FS) writeSmall(name string, data []byte) error {
	if g := f.growing[name]; g != nil && g.size <= int64(len(data)) {
		old, err := vfs.ReadSmallFile(f.small, f.join(name), math.MaxInt64)
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
	f.growing[name] = &growing{w: w}
	return f.growSmall(name, data, 0)
}

// growSmall adds to a file in memory what begins at an offset of it.
func (f *FS) growSmall(name string, data []byte, offset int64) error {
	g := f.growing[name]
	if g == nil {
		w, err := f.small.Create(f.join(name))
		if err != nil {
			return err
		}
		g = &growing{w: w}
		f.growing[name] = g
	}
	if offset < 0 || offset > g.size { // there is a gap: bytes between are missing
		return fmt.Errorf("siftkv: %s has %d bytes, and goes on at %d: bytes between are missing", name, g.size,
			uint64(offset))
	}
	if n := g.size - offset; n < int64(len(data)) {
		if _, err := g.w.Write(data[n:]); err != nil {
			return err
		}
		g.size = offset + int64(len(data))
	}
	return nil
}
