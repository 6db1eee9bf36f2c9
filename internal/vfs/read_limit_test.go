package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// A countingFS counts what is open, and may fail to open.
type countingFS struct {
	vfs.FS
	open, most, opens atomic.Int64
	fail              atomic.Pointer[error]
}

func (c *countingFS) Open(name string) (vfs.ReadFile, error) {
	if err := c.fail.Swap(nil); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: *err}
	}
	f, err := c.FS.Open(name)
	if err == nil {
		c.opens.Add(1)
		for n := c.open.Add(1); n > c.most.Load(); {
			c.most.Store(n)
		}
	}
	return &countedFile{f, c}, err
}

type countedFile struct {
	vfs.ReadFile
	c *countingFS
}

func (f *countedFile) Close() error {
	f.c.open.Add(-1)
	return f.ReadFile.Close()
}

// A meetingFS has files whose reads wait for each other.
type meetingFS struct {
	vfs.FS
	all *sync.WaitGroup
}

func (m meetingFS) Open(name string) (vfs.ReadFile, error) {
	f, err := m.FS.Open(name)
	return meetingFile{f, m.all}, err
}

type meetingFile struct {
	vfs.ReadFile
	all *sync.WaitGroup
}

func (f meetingFile) ReadAt(p []byte, off int64) (int, error) {
	f.all.Done()
	f.all.Wait()
	return f.ReadFile.ReadAt(p, off)
}

// Files that are read at the same time are open, whatever the bound, and no longer than that.
func TestAReadLimitHoldsAfterReadsAtTheSameTime(t *testing.T) {
	t.Parallel()
	const files, most = 20, 3
	var all sync.WaitGroup
	all.Add(files)
	mem := vfs.NewMem()
	limit := vfs.NewReadLimit(most)
	var wg sync.WaitGroup
	for i := range files {
		name := strconv.Itoa(i)
		write(t, mem, name, "x")
		f, err := limit.Open(meetingFS{mem, &all}, name)
		require.NoError(t, err)
		wg.Go(func() {
			_, err := f.ReadAt(make([]byte, 1), 0)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, limit.Used(), most)
}

// Readers of many more files than may be open, at once, get what is in them.
func TestAReadLimitHolds(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		const files, most, readers = 40, 5, 4
		c := &countingFS{FS: fsys}
		limit := vfs.NewReadLimit(most)
		open := make([]vfs.ReadFile, files)
		for i := range open {
			name := filepath.Join(dir, strconv.Itoa(i))
			write(t, fsys, name, fmt.Sprintf("content of %d", i))
			f, err := limit.Open(c, name)
			require.NoError(t, err)
			open[i] = f
			require.LessOrEqual(t, limit.Used(), most)
		}
		var wg sync.WaitGroup
		for r := range readers {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(r), 1))
				for range 2000 {
					i := rng.IntN(files)
					got := make([]byte, 64)
					n, err := open[i].ReadAt(got, 0)
					if !errors.Is(err, io.EOF) || string(got[:n]) != fmt.Sprintf("content of %d", i) {
						t.Errorf("file %d: %q, %v", i, got[:n], err)
					}
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, c.most.Load(), int64(most+readers), "more only while they are read")
		require.Less(t, c.opens.Load(), int64(files+2000*readers), "what is read again soon stays open")
		for _, f := range open {
			require.NoError(t, f.Close())
			require.ErrorIs(t, f.Close(), fs.ErrClosed)
			_, err := f.ReadAt(make([]byte, 1), 0)
			require.ErrorIs(t, err, fs.ErrClosed)
		}
		require.Zero(t, c.open.Load())
		require.Zero(t, limit.Used())
	})
}

// A process that has too many files open closes one of its own for the next. Other
// failures are told, and pass.
func TestAReadLimitMakesRoom(t *testing.T) {
	mem := vfs.NewMem()
	write(t, mem, "a", "a")
	write(t, mem, "b", "b")
	c := &countingFS{FS: mem}
	limit := vfs.NewReadLimit(100)
	a, err := limit.Open(c, "a")
	require.NoError(t, err)
	full := error(syscall.EMFILE)
	c.fail.Store(&full)
	b, err := limit.Open(c, "b")
	require.NoError(t, err)
	require.EqualValues(t, 1, c.open.Load())
	broken := error(syscall.EIO)
	c.fail.Store(&broken)
	_, err = a.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, syscall.EIO)
	require.Equal(t, "a", readAll(t, a))
	require.Equal(t, "b", readAll(t, b))
	_, err = limit.Open(c, "c")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, 2, limit.Used())
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.Zero(t, c.open.Load())
}
