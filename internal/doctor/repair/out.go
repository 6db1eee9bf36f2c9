package repair

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// markName is a file that the directory of Options.Out has while a repair writes to it.
// It is made before all others, and removed after CURRENT. If it is there without
// CURRENT, the rest is of a killed repair, and of no use.
const markName = "REPAIR"

const markLine = "siftkv repair=1: what is here is no store yet; run the repair again, or remove it\n"

type outDir struct {
	fs        vfs.FS // has the directory open once the repair has begun
	dir       string
	directory *vfs.Directory
	left      []string // what a repair that was killed has left, mark and lock excepted
	marked    bool     // it has a mark
	made      []string // directories that were not there, the deepest first
	ours      bool     // what is in it is this repair's, and is no store yet
	lock      io.Closer
}

// check refuses a directory with anything in it but what a repair has left.
func (o *outDir) check() error {
	o.left, o.marked = nil, false
	names, err := o.fs.List(o.dir)
	names = slices.DeleteFunc(names, func(name string) bool { return name == manifest.LockName })
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if o.marked, err = o.hasMark(len(names) == 1); err != nil {
		return err
	}
	if o.marked && slices.Contains(names, manifest.CurrentName) {
		return fmt.Errorf("siftkv: repair: %s holds a store that a repair has made and was stopped before it "+
			"could check it: verify it and remove its file %s, or remove the directory", o.dir, markName)
	}
	for _, name := range names {
		if kind, _ := manifest.ParseFileName(name); !o.marked || kind == manifest.FileUnknown && name != markName {
			return fmt.Errorf("siftkv: repair: %s is not empty: it holds %q", o.dir, name)
		}
	}
	o.left = slices.DeleteFunc(names, func(name string) bool { return name == markName })
	return nil
}

// hasMark reports whether the mark is there. Alone it may be one that was being written.
func (o *outDir) hasMark(alone bool) (has bool, err error) {
	f, err := o.fs.Open(filepath.Join(o.dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, len(markLine)+1)
	n, err := f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(b[:n]) == markLine || alone && strings.HasPrefix(markLine, string(b[:n])), err
}

// begin makes the directory the repair's.
func (o *outDir) begin() error {
	for dir := filepath.Clean(o.dir); filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := o.fs.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		o.made = append(o.made, dir)
	}
	err := vfs.MkdirAllDurable(o.fs, o.dir)
	if err == nil {
		err = o.open()
	}
	if err == nil {
		o.lock, err = o.fs.Lock(filepath.Join(o.dir, manifest.LockName), vfs.Exclusive)
	}
	if err != nil {
		o.ours = len(o.made) > 0 && !errors.Is(err, vfs.ErrLocked)
		return err
	}
	if err := o.check(); err != nil {
		return err // another repair has come before
	}
	o.ours = true
	for _, name := range o.left {
		if err := o.fs.Remove(filepath.Join(o.dir, name)); err != nil {
			return err
		}
	}
	f, err := o.fs.Create(filepath.Join(o.dir, markName))
	if err != nil {
		return err
	}
	if _, err = io.WriteString(f, markLine); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return o.fs.SyncDir(o.dir)
}

func (o *outDir) open() error {
	fsys, d, err := vfs.OpenDirectory(o.fs, o.dir)
	if err == nil {
		o.fs, o.directory = fsys, d
	}
	return err
}

// settle removes the mark and the lock: the repaired store is in force.
func (o *outDir) settle() error {
	o.ours = false
	err := o.fs.Remove(filepath.Join(o.dir, markName))
	if err == nil {
		err = o.fs.SyncDir(o.dir)
	}
	return errors.Join(err, o.unlock())
}

func (o *outDir) unlock() (err error) {
	if o.lock != nil {
		err = o.lock.Close()
		o.lock = nil
	}
	return err
}

// abort removes everything, unless the repaired store is in force. If some files cannot
// be removed, the mark tells, which goes last.
func (o *outDir) abort() {
	if names, err := o.fs.List(o.dir); err == nil && o.ours {
		o.clear(names)
	}
	_ = o.unlock() // there is nothing left to keep others from
}

func (o *outDir) clear(names []string) {
	slices.SortStableFunc(names, func(a, b string) int { return removeOrder(a) - removeOrder(b) })
	for _, name := range names {
		if kind, _ := manifest.ParseFileName(name); kind == manifest.FileUnknown && name != markName {
			continue
		}
		if o.fs.Remove(filepath.Join(o.dir, name)) != nil {
			return
		}
	}
	for _, dir := range o.made {
		_ = o.fs.Remove(dir) // it may have files of other programs
	}
}

// removeOrder is the order in which a file is removed: without CURRENT the rest is no
// store.
func removeOrder(name string) int {
	switch name {
	case manifest.CurrentName:
		return 0
	case markName:
		return 2
	case manifest.LockName:
		return 3
	}
	return 1
}
