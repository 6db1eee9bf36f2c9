package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/objects"
)

// A frozenFS is the directory of a store in an object store as it was at one moment, whatever its
// writer does meanwhile: a prefix of the store's writes. All other directories are those of the disk.
type frozenFS struct {
	objectdir.Directory
	objects *objects.Config
	current []byte // CURRENT, to open which is to ask for what is new; nil: there was none
}

// freeze opens the directory of a store in an object store, which need not be there. Closing it closes the object
// store.
func (p *program) freeze(ctx context.Context, l Location) (*frozenFS, error) {
	a, err := l.address()
	if err != nil {
		return nil, err
	}
	return p.freezeAt(ctx, a)
}

// freezeAt is freeze for an address.
func (p *program) freezeAt(ctx context.Context, a address) (*frozenFS, error) {
	o, err := p.objectsAt(ctx, a, false)
	if err != nil {
		return nil, err
	}
	directory, err := openDirectory(o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", a, err), o.Store.Close())
	}
	f := &frozenFS{Directory: directory, objects: o}
	name := filepath.Join(objectdir.Root, manifest.CurrentName)
	if _, err = f.List(objectdir.Root); err == nil {
		if _, missing := f.Stat(name); missing == nil {
			f.current, err = vfs.ReadSmallFile(f.Directory, name, 1<<16)
		}
	}
	if err == nil {
		_, err = f.List(objectdir.Root) // the logs, up to now
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", a, err), f.Close())
	}
	return f, nil
}

// openDirectory opens the directory of a store in an object store, for a reader.
func openDirectory(o *objects.Config) (objectdir.Directory, error) {
	return objectdir.OpsOf(o.Driver()).Open(objectdir.Params{Transfer: true, Local: vfs.OS,
		Log: slog.New(slog.DiscardHandler)})
}

func (f *frozenFS) Close() error { return errors.Join(f.Directory.Close(), f.objects.Store.Close()) }

func (f *frozenFS) Open(name string) (vfs.ReadFile, error) {
	if f.current != nil && filepath.Clean(name) == filepath.Join(objectdir.Root, manifest.CurrentName) {
		return vfs.FileOf(f.current), nil
	}
	return f.Directory.Open(name)
}

// Lock implements vfs.FS: in an object store readers need no lock.
func (f *frozenFS) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	if filepath.Dir(name) == objectdir.Root {
		return io.NopCloser(nil), nil
	}
	return f.Directory.Lock(name, mode)
}

// outlived returns an error if damage may be that the store went on, and deleted what this moment of it had.
func (f *frozenFS) outlived(damage []survey.Damage) (err error) {
	if len(damage) == 0 {
		return nil
	}
	now, err := openDirectory(f.objects)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, now.Close()) }()
	names, err := now.List(objectdir.Root)
	if err != nil {
		return err
	}
	return survey.Outlived(damage, names)
}

// openFile opens a file of the disk, or one of a store in an object store; the URL's path ends with its name. It
// returns its name for messages.
func (p *program) openFile(ctx context.Context, name cli.File) (vfs.ReadFile, string, error) {
	l := Location(name)
	if !l.remote() {
		f, err := vfs.OS.Open(string(name))
		return f, string(name), err
	}
	a, err := l.address()
	if err != nil {
		return nil, "", err
	}
	url, parameters := cli.CutParameters(a.url)
	if cli.Scheme(a.url) == cli.DirScheme {
		url, parameters = a.url, "" // they were taken off
	}
	at := strings.LastIndexByte(url, '/')
	base := url[at+1:]
	if kind, _ := manifest.ParseFileName(base); kind == manifest.FileUnknown {
		return nil, "", usagef("%s does not end in the name of a store's file, such as /000012.sst", l)
	}
	a.url = url[:at] + parameters
	fsys, err := p.freezeAt(ctx, a)
	if err != nil {
		return nil, "", err
	}
	f, err := fsys.Open(filepath.Join(objectdir.Root, base))
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("%s: %w", l, err), fsys.Close())
	}
	return &storeFile{ReadFile: f, fs: fsys}, l.String(), nil
}

type storeFile struct {
	vfs.ReadFile
	fs *frozenFS

	mu     sync.Mutex
	failed error
}

func (f *storeFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.ReadFile.ReadAt(b, off)
	if n < len(b) && err != nil && !errors.Is(err, io.EOF) {
		f.mu.Lock()
		f.failed = err
		f.mu.Unlock()
	}
	return n, err
}

func (f *storeFile) Close() error { return errors.Join(f.ReadFile.Close(), f.fs.Close()) }

// failureOf returns what a read of a file in an object store has failed with.
func failureOf(file vfs.ReadFile) error {
	f, ok := file.(*storeFile)
	if !ok {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}
