//go:build linux

package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

var manyTables = max(scale.Count(700, 10_000), 700)

const (
	tableKeys    = 3   // of each of them
	tablesFiles  = 256 // that the child may have open
	tableReaders = 8   // goroutines, each of which may have a file open beyond the bound
)

func init() {
	children["tables"] = func(dir string) error {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: tablesFiles, Max: tablesFiles}); err != nil {
			return err
		}
		return (&manyTablesUse{dir: dir, most: 1000}).run()
	}
}

// A process that may have 256 files open reads, copies and compacts a store of ten thousand tables, where
// MaxOpenFiles is less than that and where it promises more than there are. No step fails; and
// where the rest of the program has all files, what fails is no damage, and passes.
func TestOpenFilesOfAStoreOfManyTables(t *testing.T) {
	scale.OneGoroutine(t, "the files of one process are counted; TestOpenFilesAreBounded has several readers")
	t.Parallel()
	dir := t.TempDir()
	out, err := storetest.Child(t, "tables", dir, 0).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"store", "copy1000", "copy64"} {
		require.NoError(t, Verify(t.Context(), filepath.Join(dir, name), io.Discard), name)
	}
}

// syncless is the file system without its syncs, of which ten thousand would take a minute. It opens
// what they open.
type syncless struct{ vfs.FS }

func (f syncless) SyncFile(name string) error {
	r, err := f.Open(name)
	if err != nil {
		return err
	}
	return r.Close()
}

func (f syncless) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return d.Close()
}

func (f syncless) Create(name string) (vfs.WriteFile, error) {
	w, err := f.FS.Create(name)
	return synclessFile{w}, err
}

type synclessFile struct{ vfs.WriteFile }

func (synclessFile) Sync() error { return nil }

// A manyTablesUse is what the child does with a store of many tables.
type manyTablesUse struct {
	dir  string
	most int // MaxOpenFiles
	db   *DB
	fds  *os.File // the process's descriptors; open from the beginning, as to look takes one
	mu   sync.Mutex
	peak int // of tables that were open
}

func (u *manyTablesUse) run() (err error) {
	if u.fds, err = os.Open("/proc/self/fd"); err != nil {
		return err
	}
	for n, step := range []func() error{
		u.ingest, u.get, u.scan, u.hold, u.multiGet, u.checkpoint,
		func() error { u.most, u.peak = 64, 0; return errors.Join(u.db.Close(), u.open()) },
		u.get, u.scan, u.hold, u.multiGet, u.checkpoint, u.exhaust, u.compact, u.close,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("step %d, MaxOpenFiles %d: %w", n, u.most, err)
		}
	}
	if u.peak < u.most {
		return fmt.Errorf("no more than %d tables were open", u.peak)
	}
	return nil
}

func (u *manyTablesUse) options() *Options {
	return &Options{MaxOpenFiles: u.most, CacheSize: -1, MemtableSize: 64 << 10, TargetFileSize: 16 << 10,
		BaseLevelSize: 16 << 10, harness: harness.Harness{FS: syncless{vfs.OS}}}
}

func (u *manyTablesUse) open() (err error) {
	u.db, err = Open(filepath.Join(u.dir, "store"), u.options())
	return err
}

// count looks how many tables the process has open: no more than MaxOpenFiles says, and one for each
// goroutine that reads.
func (u *manyTablesUse) count() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, err := u.fds.Seek(0, io.SeekStart); err != nil {
		return err
	}
	names, err := u.fds.Readdirnames(-1)
	if err != nil {
		return err
	}
	open := 0
	for _, n := range names {
		if to, _ := os.Readlink("/proc/self/fd/" + n); strings.HasSuffix(to, ".sst") {
			open++
		}
	}
	if u.peak = max(u.peak, open); open > u.most+tableReaders {
		return fmt.Errorf("%d tables are open, MaxOpenFiles is %d", open, u.most)
	}
	return nil
}

func tableKey(i int) []byte { return fmt.Appendf(nil, "%06d", i) }

func tableValue(i int) []byte { return fmt.Appendf(nil, "value %d", i) }

var tablesKeys = manyTables * tableKeys

// ingest makes the store, of files that do not overlap, and opens it again.
func (u *manyTablesUse) ingest() error {
	from := filepath.Join(u.dir, "from")
	if err := errors.Join(os.Mkdir(from, 0o700), u.open()); err != nil {
		return err
	}
	var paths []string
	for t := range manyTables {
		path := filepath.Join(from, strconv.Itoa(t))
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		w := sstable.NewWriter(f, nil)
		for i := t * tableKeys; i < (t+1)*tableKeys; i++ {
			err = errors.Join(err, w.Set(tableKey(i), tableValue(i)))
		}
		_, finished := w.Finish()
		if err := errors.Join(err, finished, f.Close()); err != nil {
			return err
		}
		paths = append(paths, path)
	}
	if err := errors.Join(u.db.Ingest(context.Background(), paths, nil), u.count(), os.RemoveAll(from),
		u.db.Close(), u.open()); err != nil {
		return err
	}
	if n := u.db.Metrics().Levels[lastLevel].Files; n != manyTables {
		return fmt.Errorf("the store has %d tables", n)
	}
	return nil
}

// inParallel has all readers do a part each, and counts what is open meanwhile.
func (u *manyTablesUse) inParallel(do func(reader int) error) error {
	errs := make([]error, tableReaders)
	var wg sync.WaitGroup
	for r := range tableReaders {
		wg.Go(func() { errs[r] = errors.Join(do(r), u.count()) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// get asks for every key, in random order.
func (u *manyTablesUse) get() error {
	return u.inParallel(func(reader int) error {
		for n, i := range rand.New(rand.NewPCG(uint64(reader), 1)).Perm(tablesKeys / tableReaders) {
			i = i*tableReaders + reader
			v, err := u.db.Get(tableKey(i))
			if err != nil || string(v) != string(tableValue(i)) {
				return fmt.Errorf("key %d: %q, %w", i, v, err)
			}
			if n%1000 == 0 {
				if err := u.count(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// scan goes through everything, in both directions.
func (u *manyTablesUse) scan() error {
	return u.inParallel(func(reader int) error {
		it, err := u.db.NewIter(nil)
		if err != nil {
			return err
		}
		n, start, step := 0, it.First, it.Next
		if reader%2 == 1 {
			start, step = it.Last, it.Prev
		}
		for ok := start(); ok; ok = step() {
			n++
		}
		if n != tablesKeys {
			err = fmt.Errorf("the scan found %d keys", n)
		}
		return errors.Join(err, it.Error(), it.Close())
	})
}

// hold has more iterators than the process may have files open, each in another table, and lets
// each of them go on for some tables.
func (u *manyTablesUse) hold() error {
	const held = 2 * tablesFiles
	iters := make([]*Iterator, held)
	for n := range iters {
		it, err := u.db.NewIter(nil)
		if err != nil {
			return err
		}
		iters[n] = it
		if at := tableKey(n * (tablesKeys / held)); !it.SeekGE(at) || string(it.Key()) != string(at) {
			return fmt.Errorf("%q: %q, %w", at, it.Key(), it.Error())
		}
	}
	for step := range 4 * tableKeys {
		for n, it := range iters {
			want := tableKey(n*(tablesKeys/held) + step + 1)
			if !it.Next() || string(it.Key()) != string(want) {
				return fmt.Errorf("%q: %q, %w", want, it.Key(), it.Error())
			}
		}
		if err := u.count(); err != nil {
			return err
		}
	}
	var err error
	for _, it := range iters {
		err = errors.Join(err, it.Close())
	}
	return err
}

func (u *manyTablesUse) multiGet() error {
	return u.inParallel(func(reader int) error {
		rng := rand.New(rand.NewPCG(uint64(reader), 2))
		for range 10 {
			keys := make([][]byte, 500)
			wants := make([][]byte, len(keys))
			for n := range keys {
				i := rng.IntN(tablesKeys)
				keys[n], wants[n] = tableKey(i), tableValue(i)
			}
			got, err := u.db.MultiGet(keys)
			if err != nil {
				return err
			}
			for n := range keys {
				if string(got[n]) != string(wants[n]) {
					return fmt.Errorf("%s: %q", keys[n], got[n])
				}
			}
			if err := u.count(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (u *manyTablesUse) checkpoint() error {
	return u.db.Checkpoint(context.Background(), filepath.Join(u.dir, fmt.Sprint("copy", u.most)))
}

// exhaust leaves a store that has no table open not one file, and then gives all back: what cannot be
// done meanwhile says why, is no damage, and can be done afterwards.
func (u *manyTablesUse) exhaust() error {
	if err := errors.Join(u.db.Close(), u.open()); err != nil {
		return err
	}
	it, err := u.db.NewIter(nil)
	if err != nil {
		return err
	}
	taken, err := u.withoutFiles(it)
	for _, f := range taken {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return err
	}
	if !it.Last() {
		return fmt.Errorf("the iterator does not go on: %w", it.Error())
	}
	u.db.untilResumed()
	return errors.Join(it.Close(), u.get(), u.db.Flush(context.Background()))
}

func (u *manyTablesUse) withoutFiles(it *Iterator) (taken []*os.File, err error) {
	if n := u.db.Metrics().OpenFiles; n > 0 {
		return nil, fmt.Errorf("%d tables are open", n)
	}
	for what, do := range []func() error{
		func() error { _, err := u.db.Get(tableKey(7)); return err },
		func() error {
			_, err := u.db.MultiGet([][]byte{tableKey(7), tableKey(80), tableKey(9), tableKey(5)})
			return err
		},
		func() error { it.SeekGE(tableKey(1000)); return it.Error() },
		func() error { it.Last(); return it.Error() },
		func() error { return u.db.Checkpoint(context.Background(), filepath.Join(u.dir, "none")) },
		func() error {
			return errors.Join(u.db.Set(tableKey(7), tableValue(7), Sync), u.db.Flush(context.Background()))
		},
	} {
		u.db.cleaner.Wait() // it has a directory open while it removes what opening left over
		for {               // what is left, or was closed by what has failed before
			f, err := os.Open(os.DevNull)
			if err != nil {
				break
			}
			taken = append(taken, f)
		}
		if err := do(); !errors.Is(err, unix.EMFILE) || errors.Is(err, ErrCorruption) {
			return taken, fmt.Errorf("step %d without files: %w", what, err)
		}
	}
	return taken, nil
}

// compact replaces all tables while iterators have the old ones.
func (u *manyTablesUse) compact() error {
	failures := u.db.Metrics().Failures // a flush, for want of a file
	for i := 0; i < tablesKeys; i += tableKeys {
		if err := u.db.Set(tableKey(i), tableValue(i), Async); err != nil {
			return err
		}
	}
	it, err := u.db.NewIter(nil)
	if err != nil || !it.First() {
		return fmt.Errorf("no key, %w", err)
	}
	if err := errors.Join(u.db.Compact(context.Background(), nil, nil), u.scan(), u.get()); err != nil {
		return err
	}
	n := 1
	for it.Next() {
		n++
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil || n != tablesKeys {
		return fmt.Errorf("the iterator found %d keys, %w", n, err)
	}
	m := u.db.Metrics()
	if m.Failures != failures || m.FailedCompactions > 0 || m.QuarantinedTables > 0 ||
		m.Levels[lastLevel].Files >= manyTables {
		return fmt.Errorf("%d failures, %d failed compactions, %d tables quarantined, %d files", m.Failures,
			m.FailedCompactions, m.QuarantinedTables, m.Levels[lastLevel].Files)
	}
	return nil
}

// close leaves no file open.
func (u *manyTablesUse) close() error {
	if err := u.db.Close(); err != nil {
		return err
	}
	peak := u.peak
	u.peak, u.most = 0, -tableReaders
	err := u.count()
	u.peak = peak
	return errors.Join(err, u.fds.Close())
}
