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
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/internal/vfs"
)

// An fsWriter is the writer of a store. It has fenced all writers before.
type fsWriter struct {
	f         *FS
	author    filelist.WriterID
	logs      *Logs
	collector collector
	local     *locallog.Dir       // nil: there is none
	ended     []locallog.EndedLog // that the list of files has which was there
	released  atomic.Bool         // the next list needs no log on the local disk
	left      atomic.Bool         // a list needs no log on the local disk, nor do later ones
	partial   sync.Map            // the numbers of logs that are not in memory as a whole

	slots        sync.Mutex // held to change files of slots, and to publish that
	slotsChanged bool       // since they were published

	// Until the first CURRENT is set: whether there was a list of files, and has all sorted files and blob files. Under
	// the lock of f.
	listed bool
}

// takeOver fences the earlier writers. After that, the newest list of files and the logs do not change. See openLogs
// for the requests.
func (f *FS) takeOver() (io.Closer, error) {
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	if f.o.Checkpoint != "" {
		return nil, errReader
	}
	if err := f.locate(f.ctx); err != nil {
		return nil, err
	}
	local, err := locallog.Claim(f.o.Local, f.o.Dir, f.o.LocalLog)
	if err != nil {
		return nil, err
	}
	w := &fsWriter{f: f, local: local}
	if err := w.takeOver(); err != nil {
		return nil, errors.Join(err, w.local.Close(false, f.o.Log))
	}
	w.collector.start(w)
	f.mu.Lock()
	f.writer = w
	f.mu.Unlock()
	return w, nil
}

// takeOver makes w the store's writer.
func (w *fsWriter) takeOver() error {
	f := w.f
	v := f.tail
	f.tail = nil
	if err := f.small.MkdirAll(objectdir.Root); err != nil {
		return err
	}
	v, err := w.examineLogs(v)
	if err != nil {
		return err
	}
	logs, found, err := openLogs(f.ctx, f.seq, v, f.o.Logs, f.take)
	if err != nil {
		return err
	}
	w.logs, w.author = logs, filelist.WriterID{Prefix: f.prefix, Epoch: logs.Writer().Epoch(),
		Nonce: logs.Writer().Nonce()}
	logs.published = func(c filelist.Chain) {
		w.left.Store(c.List.Location.ID == 0)
		w.collector.published(c.Slots, c.List.LogStart)
	}
	if f.o.LongLog != nil {
		logs.long = f.o.LongLog
	}
	if found.List == nil {
		err = f.checkBegun()
	} else {
		w.listed = !f.o.LocalLog && found.List.Location.ID == 0
		w.collector.inherits = found.Span >= f.o.Grace
	}
	if err == nil {
		err = w.takeLogs()
	}
	if err != nil {
		return errors.Join(err, logs.Close())
	}
	return nil
}

// Close flushes the logs, and releases the lock.
func (w *fsWriter) Close() error {
	err := errors.Join(w.logs.Flush(), w.logs.Close())
	w.collector.stop()
	return errors.Join(err, w.local.Close(w.left.Load(), w.f.o.Log))
}

// createFile returns a stored file. Its Sync adds it to the list of files.
func (w *fsWriter) createFile(num uint64, kind manifest.FileKind) (vfs.WriteFile, error) {
	f := filelist.File{WriterID: w.author, Kind: kind}
	t := w.f.storedFiles()
	create := t.CreateBlob
	if kind == manifest.FileTable {
		create = t.Create
	}
	out, err := create(f.Key(num))
	if err != nil {
		return nil, err
	}
	return &newFile{WriteFile: out, w: w, num: num, file: f}, nil
}

type newFile struct {
	vfs.WriteFile
	w    *fsWriter
	num  uint64
	file filelist.File
}

func (t *newFile) Write(p []byte) (int, error) {
	n, err := t.WriteFile.Write(p)
	t.file.Size += int64(n)
	return n, err
}

func (t *newFile) Sync() error {
	if err := t.WriteFile.Sync(); err != nil {
		return err
	}
	f := t.w.f
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list.Files[t.num] = t.file
	t.w.listed = false
	return nil
}

// removeFile takes a stored file out of the list. Its object goes later.
func (w *fsWriter) removeFile(name string, num uint64, kind manifest.FileKind) error {
	f := w.f
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.list.Files[num]
	if !ok || t.Kind != kind {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	delete(f.list.Files, num)
	w.listed = false
	w.collector.file(num, t)
	return nil
}

// createLog returns a log, and adds it to the list of files.
func (w *fsWriter) createLog(name string, num uint64) (vfs.WriteFile, error) {
	if w.released.Load() {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrClosed}
	}
	if w.f.o.LocalLog {
		return w.local.Create(num)
	}
	marker, err := w.f.small.Create(name)
	if err != nil {
		return nil, err
	}
	out, err := w.logs.Create(num)
	if err != nil {
		return nil, errors.Join(err, marker.Close())
	}
	return &ownLog{WriteFile: out, marker: marker, w: w, num: num}, nil
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
	current := filepath.Join(objectdir.Root, manifest.CurrentName)
	text, err := vfs.ReadSmallFile(m.w.f.small, current, math.MaxInt64)
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

// setCurrent replaces CURRENT, and publishes the list of files that goes with it. If nothing changed since takeOver,
// publishing the first CURRENT waits for the next put: it only adds an empty log, and a manifest that says the same as
// the one before.
func (w *fsWriter) setCurrent(from, to string) error {
	w.f.mu.Lock()
	later := w.listed
	w.listed = false
	w.f.mu.Unlock()
	if !later {
		if err := w.publish(from); err != nil {
			return err
		}
		return w.f.small.Rename(from, to)
	}
	if err := w.f.small.Rename(from, to); err != nil {
		return err
	}
	w.logs.PublishLater(w.lists(to))
	return nil
}

// LogEntries implements objectdir.Directory.
func (f *FS) LogEntries(log uint64) int {
	if w := f.asWriter(); w != nil {
		return w.logs.Entries(log)
	}
	return 0
}

// Finish implements objectdir.Directory. The next published list of files needs no log, so any machine can open the
// store, and a list is one object for the next opening. No log can be created any more.
func (f *FS) Finish() (unchanged bool) {
	w := f.asWriter()
	if w == nil || w.logs.Unchanged() {
		return w != nil
	}
	w.released.Store(true)
	w.logs.whole.Store(true)
	return false
}

// Confirm is Writer.Confirm of the store's writer.
func (f *FS) Confirm(ctx context.Context) error {
	w := f.asWriter()
	if w == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)()
	return w.logs.Writer().Confirm(ctx)
}

// publish publishes a list of files with current as CURRENT. It is one request.
func (w *fsWriter) publish(current string) error {
	if _, err := w.logs.Publish(w.lists(current)); err != nil {
		return fmt.Errorf("the list of files was not published: %w", err)
	}
	return nil
}

// lists returns a listMaker with the file current as CURRENT.
func (w *fsWriter) lists(current string) listMaker {
	return func(start func(oldest uint64) uint64) (*filelist.List, error) { return w.nextList(current, start) }
}

// nextList is the list of files as they are now.
func (w *fsWriter) nextList(current string, start func(oldest uint64) uint64) (*filelist.List, error) {
	f := w.f
	text, err := vfs.ReadSmallFile(f.small, current, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	num, err := manifest.ParseCurrent(string(text))
	if err != nil {
		return nil, err
	}
	l := &filelist.List{Current: string(text), Logs: w.local.Numbers()}
	l.Location, err = w.local.Location(f.o.LocalLog && !w.released.Load(), w.author.Epoch, w.ended)
	if err != nil {
		return nil, err
	}
	if l.Manifest, err = vfs.ReadSmallFile(f.small, f.path(manifest.FileManifest, num), math.MaxInt64); err != nil {
		return nil, err
	}
	names, err := f.small.List(objectdir.Root)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		switch kind, num := manifest.ParseFileName(name); kind {
		case manifest.FileWAL:
			l.Logs = append(l.Logs, num)
		case manifest.FileSlot:
			text, err := vfs.ReadSmallFile(f.small, f.join(name), math.MaxInt64)
			switch {
			case errors.Is(err, fs.ErrNotExist): // it was removed since
				continue
			case err != nil:
				return nil, err
			case l.SlotFiles == nil:
				l.SlotFiles = map[string]string{}
			}
			l.SlotFiles[manifest.SlotOf(name)] = string(text)
		}
	}
	slices.Sort(l.Logs)
	l.Logs = slices.Compact(l.Logs)
	oldest := uint64(math.MaxUint64)
	if len(l.Logs) > 0 {
		oldest = l.Logs[0]
	}
	l.LogStart = start(oldest)
	f.mu.Lock()
	defer f.mu.Unlock()
	l.Files = maps.Clone(f.list.Files)
	return l, nil
}

func (f *FS) path(kind manifest.FileKind, num uint64) string {
	return filepath.Join(objectdir.Root, manifest.FileName(kind, num))
}
