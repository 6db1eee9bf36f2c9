package vfs

import "io"

// Relieve returns a file system that is fsys, and has files under the bound closed where a call fails for want of one.
// They are opened again when they are next read: a process that runs out of files becomes slower, and goes on.
func (l *ReadLimit) Relieve(fsys FS) FS {
	r := relieved{fsys, l}
	if s, ok := fsys.(FileSyncer); ok {
		return relievedSyncer{r, s}
	}
	return r
}

func (r relieved) OpenDirectory(dir string) (FS, *Directory, error) {
	var d *Directory
	fsys, err := relieve(r.limit, func() (fsys FS, err error) {
		fsys, d, err = OpenDirectory(r.FS, dir)
		return fsys, err
	})
	if err != nil {
		return nil, nil, err
	}
	return r.limit.Relieve(fsys), d, nil
}

func (r relieved) hold(name string) (release func() error) { return hold(r.FS, name) }

// relieves returns what the file system was made of.
func (r relieved) relieves() FS { return r.FS }

type relieved struct {
	FS
	limit *ReadLimit
}

type relievedSyncer struct {
	relieved
	syncer FileSyncer
}

// relieve repeats a call as long as files can be closed for it.
func relieve[T any](l *ReadLimit, call func() (T, error)) (T, error) {
	v, err := call()
	for err != nil && l.giveWay(err) {
		v, err = call()
	}
	return v, err
}

func (r relieved) again(call func() error) error {
	_, err := relieve(r.limit, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (r relieved) Create(name string) (WriteFile, error) {
	return relieve(r.limit, func() (WriteFile, error) { return r.FS.Create(name) })
}

func (r relieved) Open(name string) (ReadFile, error) {
	return relieve(r.limit, func() (ReadFile, error) { return r.FS.Open(name) })
}

func (r relieved) List(dir string) ([]string, error) {
	return relieve(r.limit, func() ([]string, error) { return r.FS.List(dir) })
}

func (r relieved) Lock(name string, mode LockMode) (io.Closer, error) {
	return relieve(r.limit, func() (io.Closer, error) { return r.FS.Lock(name, mode) })
}

func (r relieved) SyncDir(dir string) error {
	return r.again(func() error { return r.FS.SyncDir(dir) })
}

func (r relievedSyncer) SyncFile(name string) error {
	return r.again(func() error { return r.syncer.SyncFile(name) })
}
