package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// ingestMarks returns the ingests that the files in a directory name.
func ingestMarks(t *testing.T, fsys vfs.FS) (marks []manifest.Ingest) {
	t.Helper()
	names, err := fsys.List("db")
	require.NoError(t, err)
	for _, name := range names {
		if ingest, ok := manifest.ParseIngest(name); ok {
			marks = append(marks, ingest)
		}
	}
	return marks
}

// isIngestible reports whether a table, whole as it is, came from elsewhere: its entries have
// no sequence numbers.
func isIngestible(t *testing.T, fsys vfs.FS, name string) bool {
	t.Helper()
	f, err := fsys.Open(filepath.Join("db", name))
	if errors.Is(err, fs.ErrNotExist) {
		return false // the cleaner has removed it
	}
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	r, err := sstable.NewReader(f, size, nil)
	if err != nil {
		require.NoError(t, f.Close())
		return false // a flush is writing it
	}
	info, err := r.Info()
	require.NoError(t, errors.Join(err, r.Close()))
	return info.LargestSeq == 0
}

// As long as a table of an ingest is in the directory and not in the manifest, a mark
// has its number: before every call that changes the disk. The mark goes when the
// ingest ends, well or not.
func TestAnIngestIsMarkedWhileItIsUnderWay(t *testing.T) {
	t.Parallel()
	for refused := 1; ; refused++ {
		mem := vfs.NewMem()
		f := &vfstest.FaultFS{FS: mem}
		o := &Options{harness: harness.Harness{FS: f, Backoff: quickBackoff}}
		db, err := Open("db", o)
		require.NoError(t, err)
		set(t, db, "before", "1")
		var paths []string
		for i := range 3 {
			paths = append(paths, ingestFile(t, mem, fmt.Sprintf("file%d", i), nil, fmt.Sprintf("k%d=v", i)))
		}
		empty := ingestFile(t, mem, "empty", nil)
		calls, marked, refusedOp := 0, 0, ""
		f.Set(func(c vfstest.Call) (int, error) {
			if !c.Changes {
				return 0, nil
			}
			marks := ingestMarks(t, mem)
			names, err := mem.List("db")
			require.NoError(t, err)
			listed := map[uint64]bool{}
			inForce, err := manifest.Current(mem, "db") // a store that resumes has a new one
			require.NoError(t, err)
			require.NoError(t, manifest.Load(mem, "db", inForce, func(e *manifest.Edit) error {
				for _, a := range e.Added {
					listed[a.Table.Num] = true
				}
				return nil
			}))
			for _, name := range names {
				kind, num := manifest.ParseFileName(name)
				if kind != manifest.FileTable || listed[num] || num < 3 {
					continue
				}
				if slices.ContainsFunc(marks, func(i manifest.Ingest) bool { return i.Has(num) }) {
					marked++
				} else {
					require.False(t, isIngestible(t, mem, name), name)
				}
			}
			if calls++; calls == refused {
				refusedOp = c.Op
				return 0, syscall.EIO
			}
			return 0, nil
		})
		err = db.Ingest(t.Context(), append(paths, empty), nil)
		if err != nil { // the marks are watched until the store has resumed
			db.untilResumed()
			db.cleaner.Wait()
		}
		f.Set(nil)
		if err == nil {
			require.Positive(t, marked)
			requireGet(t, db, "k2", "v")
		} else {
			require.ErrorIs(t, err, syscall.EIO)
		}
		marks := ingestMarks(t, mem)
		if refusedOp != "remove" && !errors.Is(err, ErrReadOnly) {
			require.Empty(t, marks, "call %d: %v", refused, err)
		}
		require.NoError(t, db.Close())
		// Numbers of a mark are never given to other files.
		db, err2 := Open("db", &Options{harness: harness.Harness{FS: mem}})
		require.NoError(t, err2)
		db.cleaner.Wait()
		require.Empty(t, ingestMarks(t, mem))
		for _, m := range marks {
			require.Greater(t, db.newFileNum(), m.Last)
		}
		require.NoError(t, db.Close())
		if refused > calls {
			require.Greater(t, refused, 15)
			return
		}
	}
}

// An ingest that is given up leaves neither mark nor tables.
func TestAnIngestThatIsGivenUpLeavesNoMark(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: mem}})
	require.NoError(t, err)
	path := ingestFile(t, mem, "file", nil, "k=v")
	before, err := mem.List("db")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, db.Ingest(ctx, []string{path}, nil), context.Canceled)
	require.ErrorIs(t, db.Ingest(t.Context(), []string{path, path}, nil), ErrNotIngestible)
	after, err := mem.List("db")
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, db.Close())
}

// When Ingest has returned, its mark is gone, whatever happens next: should the manifest be
// lost after a power cut, the files are no part of an ingest that was broken off.
func TestAnIngestThatEndedLeavesNoMarkBehindAPowerCut(t *testing.T) {
	for seed := range uint64(20) {
		disk := crashfs.NewDisk()
		fsys := crashfs.New(disk, nothing)
		db, err := Open("db", &Options{harness: harness.Harness{FS: fsys}, CacheSize: -1})
		require.NoError(t, err)
		require.NoError(t, db.Ingest(t.Context(), []string{ingestFile(t, fsys, "file", nil, "k=v")}, nil))
		require.Empty(t, ingestMarks(t, crashfs.New(disk.Cut(rand.New(rand.NewPCG(seed, 1))), nothing)))
		require.NoError(t, db.Close())
	}
}
