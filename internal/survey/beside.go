package survey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// HoldBeside is Hold for a reader that does not stop a writer of the store. If there is a writer, the result is the
// store as it was at one moment, a prefix of its writes.
func HoldBeside(fsys vfs.FS, dir string) (*Held, error) {
	h, err := openHeld(fsys, dir)
	if err != nil {
		return nil, err
	}
	if h.lock, err = Lock(h.fs, h.dir, vfs.Shared); errors.Is(err, vfs.ErrLocked) {
		err = h.freeze(err)
	}
	if err != nil {
		return nil, errors.Join(err, h.directory.Close())
	}
	return h, nil
}

// freeze registers a reader, so that the writer keeps all files, and notes what the store is now. Where nothing may be
// written there is no registration, and files may go. If there is no store yet, the error is locked.
func (h *Held) freeze(locked error) error {
	reg, err := manifest.Register(h.fs, h.dir)
	switch {
	case err == nil:
		h.lock = reg
	case vfs.IsUnwritable(err):
		h.lock = io.NopCloser(nil)
	default:
		return err
	}
	f := &frozenFS{FS: h.fs, dir: h.dir, registered: reg != nil, sizes: map[string]int64{}}
	if err = f.freeze(); errors.Is(err, fs.ErrNotExist) {
		err = locked
	}
	if err != nil {
		return errors.Join(err, h.lock.Close())
	}
	h.fs, h.frozen = f, f
	return nil
}

// A frozenFS is the directory of a store that a program writes to, as it was at one moment: files that are new are not
// there, and files that grow end where they ended.
//
// A writer puts values into blob files, then writes into logs, and then tables into the manifest. They are looked at in
// the opposite order, and logs from the newest to the oldest: each has what those before it refer to.
type frozenFS struct {
	vfs.FS
	dir        string
	registered bool
	current    []byte           // CURRENT
	manifest   *Manifest        // nil: it is damaged
	sizes      map[string]int64 // of the manifest and the logs
	names      []string
}

func (f *frozenFS) freeze() (err error) {
	if f.current, err = vfs.ReadSmallFile(f.FS, f.path(manifest.CurrentName), 1<<16); err != nil {
		return err
	}
	if err = f.freezeManifest(); err != nil {
		return err
	}
	names, err := f.FS.List(f.dir)
	if err != nil {
		return err
	}
	if err = f.freezeLogs(names); err != nil {
		return err
	}
	if names, err = f.FS.List(f.dir); err != nil {
		return err
	}
	f.names = slices.DeleteFunc(names, func(name string) bool { return !f.has(name) })
	return nil
}

// freezeManifest reads the manifest in force. One that is damaged tells nothing.
func (f *frozenFS) freezeManifest() error {
	num, err := manifest.Current(f, f.dir)
	if errors.Is(err, base.ErrCorruption) {
		return nil
	}
	if err != nil {
		return err
	}
	name := manifest.FileName(manifest.FileManifest, num)
	size, err := f.Stat(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f.sizes[name] = size
	m, _, err := (&Store{Dir: f.dir, fs: f, ctx: context.Background(), o: Options{frozen: true}}).readManifest(num)
	if err == nil && !m.Broken {
		f.manifest = m
	}
	return err
}

// freezeLogs notes the sizes of the logs that may have writes in no table.
func (f *frozenFS) freezeLogs(names []string) error {
	from := uint64(0)
	if f.manifest != nil {
		from = f.manifest.LogNum
	}
	for _, num := range slices.Backward(manifest.Numbers(names, manifest.FileWAL, from)) {
		name := manifest.FileName(manifest.FileWAL, num)
		size, err := f.Stat(f.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was made in advance, and removed
		}
		if err != nil {
			return err
		}
		f.sizes[name] = size
	}
	return nil
}

func (f *frozenFS) has(name string) bool {
	kind, num := manifest.ParseFileName(name)
	m := f.manifest
	if m != nil && m.Slots.Has(name) {
		return true
	}
	switch kind {
	case manifest.FileWAL:
		_, ok := f.sizes[name]
		return ok
	case manifest.FileTemp, manifest.FileIngest, manifest.FileReader, manifest.FileConsumer:
		return false
	case manifest.FileManifest:
		return m == nil || num == m.Num
	case manifest.FileTable:
		return m == nil || m.Live[num].Table.Num == num
	case manifest.FileBlob:
		return m == nil || m.Blobs[num].Num == num || f.isOfLog(name)
	default:
		return true
	}
}

// isOfLog reports whether a blob file may have values of a log.
func (f *frozenFS) isOfLog(name string) bool {
	file, err := f.FS.Open(f.path(name))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // it was read only
	size, err := file.Size()
	return err == nil && isOfLog(file, size)
}

func (f *frozenFS) path(name string) string { return filepath.Join(f.dir, name) }

func (f *frozenFS) List(dir string) ([]string, error) {
	if dir == f.dir {
		return slices.Clone(f.names), nil
	}
	return f.FS.List(dir)
}

func (f *frozenFS) Open(name string) (vfs.ReadFile, error) {
	if name == f.path(manifest.CurrentName) {
		return vfs.FileOf(f.current), nil
	}
	file, err := manifest.OpenKept(f.FS, name) // the writer may have renamed it since
	if size, ok := f.sizes[filepath.Base(name)]; ok && err == nil && filepath.Dir(name) == f.dir {
		return frozenFile{file, size}, nil
	}
	return file, err
}

// outlived returns an error if damage may be that the store went on, and removed what this moment of it had.
func (f *frozenFS) outlived(damage []Damage) error {
	if f.registered || len(damage) == 0 {
		return nil
	}
	names, err := f.FS.List(f.dir)
	if err != nil {
		return err
	}
	return Outlived(damage, names)
}

// Outlived returns an error if a damaged file is not among those that a store has now.
func Outlived(damage []Damage, names []string) error {
	for _, d := range damage {
		switch kind, _ := manifest.ParseFileName(d.File); kind {
		case manifest.FileTable, manifest.FileBlob, manifest.FileWAL, manifest.FileKept:
			if !slices.Contains(names, d.File) {
				return fmt.Errorf("the store went on meanwhile, and has no %s any more; run the command again", d.File)
			}
		default:
		}
	}
	return nil
}

type frozenFile struct {
	vfs.ReadFile
	size int64
}

func (f frozenFile) Size() (int64, error) {
	size, err := f.ReadFile.Size()
	return min(size, f.size), err
}
