package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// An fsWriter is who has fenced all writers before.
type fsWriter struct {
	f         *FS
	epoch     uint64
	manifests *Writer
	logs      *Logs
	collector collector

	publishing sync.Mutex // of lists of files
}

// takeOver fences whoever writes to the store. What is there then, is there for good: the list of
// files that was put there last, and the logs. It is seven requests, or eight if there are logs,
// and one more for each entry of these.
func (f *FS) takeOver() (io.Closer, error) {
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	w := &fsWriter{f: f}
	for err := ErrMoved; err != nil; {
		if err = f.loadOnce(); err == nil {
			err = w.fence()
		}
		if err != nil && !errors.Is(err, ErrMoved) {
			return nil, err
		}
		f.newer = nil // read it again, if need be
	}
	f.mu.Lock()
	f.writer = w
	f.mu.Unlock()
	w.collector.start(w)
	return w, nil
}

// fence makes w the store's writer.
func (w *fsWriter) fence() error {
	f := w.f
	var newer []Entry
	var err error
	if w.manifests, newer, err = f.manifests.Fence(f.ctx, f.end, 0); err != nil {
		return err
	}
	if n := len(newer); n > 0 { // the writer before went on meanwhile
		if err := f.accept(newer[n-1]); err != nil {
			return err
		}
	}
	w.epoch = w.manifests.Epoch()
	f.logs.belongTo(f.manifests.Store()) // all entries of the log may have been deleted
	oldest := uint64(0)
	if len(f.list.logs) > 0 {
		oldest = f.list.logs[0]
	}
	var logs []Log
	if w.logs, logs, err = Recover(f.ctx, f.logs, f.list.logStart, oldest, w.epoch, f.o.Logs); err != nil {
		return err
	}
	for _, l := range logs {
		if err := f.writeSmall(manifest.FileName(manifest.FileWAL, l.Number), l.Data); err != nil {
			return err
		}
	}
	return nil
}

// Close gives the lock back, after it has put there what the logs have.
func (w *fsWriter) Close() error {
	err := errors.Join(w.logs.Flush(), w.logs.Close())
	w.collector.stop()
	return err
}

// createTable returns a sorted file, which is in the list of files from its Sync on.
func (w *fsWriter) createTable(num uint64) (vfs.WriteFile, error) {
	file, err := w.f.sortedFiles().Create(tableObject(num, w.epoch))
	if err != nil {
		return nil, err
	}
	return &newTable{WriteFile: file, w: w, num: num}, nil
}

// A newTable is a sorted file that is being written.
type newTable struct {
	vfs.WriteFile
	w    *fsWriter
	num  uint64
	size int64
}

func (t *newTable) Write(p []byte) (int, error) {
	n, err := t.WriteFile.Write(p)
	t.size += int64(n)
	return n, err
}

func (t *newTable) Sync() error {
	if err := t.WriteFile.Sync(); err != nil {
		return err
	}
	f := t.w.f
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list.tables[t.num] = table{epoch: t.w.epoch, size: t.size}
	return nil
}

// removeTable takes a sorted file out of the list. Its object goes later.
func (w *fsWriter) removeTable(name string, num uint64) error {
	f := w.f
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.list.tables[num]
	if !ok {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(f.list.tables, num)
	w.collector.table(tableObject(num, t.epoch))
	return nil
}

// createLog returns a log. In the list of files it is from now on.
func (w *fsWriter) createLog(name string, num uint64) (vfs.WriteFile, error) {
	marker, err := w.f.small.Create(name)
	if err != nil {
		return nil, err
	}
	if err := marker.Close(); err != nil {
		return nil, err
	}
	return w.logs.Create(num)
}

// createManifest returns a manifest. While CURRENT names it, Sync publishes it.
func (w *fsWriter) createManifest(name string) (vfs.WriteFile, error) {
	file, err := w.f.small.Create(name)
	if err != nil {
		return nil, err
	}
	return &manifestFile{WriteFile: file, w: w, name: filepath.Base(name)}, nil
}

type manifestFile struct {
	vfs.WriteFile
	w    *fsWriter
	name string
}

func (m *manifestFile) Sync() error {
	current := filepath.Join(m.w.f.o.Root, manifest.CurrentName)
	text, err := readAll(m.w.f.small, current)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	num, err := manifest.ParseCurrent(string(text))
	if err != nil || manifest.FileName(manifest.FileManifest, num) != m.name {
		return err
	}
	return m.w.publish(current)
}

// publish puts a list of files there with what is to be CURRENT. It is one request.
func (w *fsWriter) publish(current string) error {
	w.publishing.Lock()
	defer w.publishing.Unlock()
	l, err := w.nextList(current)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.f.ctx, w.f.o.Logs.Patience)
	defer cancel()
	slot, err := w.manifests.Put(ctx, l.encode())
	if err != nil {
		return fmt.Errorf("the list of files was not published: %w", err)
	}
	w.collector.published(slot, l.logStart)
	return nil
}

// nextList is the list of files as they are now.
func (w *fsWriter) nextList(current string) (*fileList, error) {
	f := w.f
	text, err := readAll(f.small, current)
	if err != nil {
		return nil, err
	}
	num, err := manifest.ParseCurrent(string(text))
	if err != nil {
		return nil, err
	}
	l := &fileList{current: string(text)}
	if l.manifest, err = readAll(f.small, f.path(manifest.FileManifest, num)); err != nil {
		return nil, err
	}
	names, err := f.small.List(f.o.Root)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if kind, num := manifest.ParseFileName(name); kind == manifest.FileWAL {
			l.logs = append(l.logs, num)
		}
	}
	slices.Sort(l.logs)
	oldest := uint64(math.MaxUint64)
	if len(l.logs) > 0 {
		oldest = l.logs[0]
	}
	l.logStart = w.logs.Start(oldest)
	f.mu.Lock()
	defer f.mu.Unlock()
	l.tables = maps.Clone(f.list.tables)
	return l, nil
}

// path returns the name of a numbered file.
func (f *FS) path(kind manifest.FileKind, num uint64) string {
	return filepath.Join(f.o.Root, manifest.FileName(kind, num))
}

// readAll returns what a file has.
func readAll(fsys vfs.FS, name string) (data []byte, err error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	data = make([]byte, size)
	if _, err := file.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data, nil
}
