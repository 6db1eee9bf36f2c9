package stress

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// writeTo makes a file of some bytes, which are synced, and its name, if durable is set.
func writeTo(t *testing.T, fsys vfs.FS, name string, data []byte, durable bool) vfs.WriteFile {
	t.Helper()
	f, err := fsys.Create(name)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	if durable {
		require.NoError(t, f.Sync())
		require.NoError(t, fsys.SyncDir(filepath.Dir(name)))
	}
	return f
}

func readBack(t *testing.T, fsys vfs.FS, name string) ([]byte, error) {
	t.Helper()
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	require.NoError(t, err)
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if err != nil {
		require.ErrorIs(t, err, io.EOF)
	}
	require.NoError(t, f.Close())
	return data[:n], nil
}

// diskWithDir returns a disk with a durable directory.
func diskWithDir(t *testing.T, seed uint64) *Disk {
	t.Helper()
	d := NewDisk(seed)
	s := d.Mount(nil)
	require.NoError(t, s.MkdirAll("db"))
	require.NoError(t, s.SyncDir("."))
	s.Unmount()
	return d
}

func page(b byte) []byte { return bytes.Repeat([]byte{b}, pageSize) }

// What was synced is there after a power cut. Of the rest, each page is there, or zeros, or
// the file ends before it: all of that happens.
func TestAPowerCutTakesWhatWasNotSynced(t *testing.T) {
	lengths, zeros, whole := map[int]bool{}, 0, 0
	for seed := range uint64(60) {
		d := diskWithDir(t, seed)
		s := d.Mount(nil)
		f := writeTo(t, s, "db/f", page('s'), true)
		_, err := f.Write(append(page('a'), page('b')...))
		require.NoError(t, err)
		d.Cut()
		_, err = f.Write(page('x'))
		require.ErrorIs(t, err, ErrGone)
		got, err := readBack(t, d.Mount(nil), "db/f")
		require.NoError(t, err)
		require.Equal(t, page('s'), got[:pageSize])
		lengths[len(got)/pageSize] = true
		if bytes.Equal(got, append(append(page('s'), page('a')...), page('b')...)) {
			whole++
		}
		if len(got) >= 2*pageSize && bytes.Equal(got[pageSize:2*pageSize], make([]byte, pageSize)) {
			zeros++
		}
	}
	require.True(t, lengths[1] && lengths[2] && lengths[3], "files end where they did, and before: %v", lengths)
	require.Positive(t, whole)
	require.Positive(t, zeros)
}

// After a sync that failed the next one says that all is well, and what the first one had
// to write is lost all the same, unless chance keeps it; what came later is safe.
func TestASyncAfterAFailedOneLies(t *testing.T) {
	lost := 0
	for seed := range uint64(40) {
		d := diskWithDir(t, seed)
		fails := false
		s := d.Mount(func(c Call) Outcome {
			if fails && c.Op == "sync" {
				fails = false
				return Outcome{Err: syscall.EIO}
			}
			return Outcome{}
		})
		f := writeTo(t, s, "db/f", page('s'), true)
		_, err := f.Write(page('a'))
		require.NoError(t, err)
		fails = true
		require.ErrorIs(t, f.Sync(), syscall.EIO)
		require.NoError(t, f.Sync())
		_, err = f.Write(page('b'))
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		before, err := readBack(t, s, "db/f")
		require.NoError(t, err)
		require.Equal(t, append(append(page('s'), page('a')...), page('b')...), before,
			"programs see it until the power is cut")
		require.Equal(t, uint64(2), d.Counts().Lies)
		d.Cut()
		got, err := readBack(t, d.Mount(nil), "db/f")
		require.NoError(t, err)
		require.Len(t, got, 3*pageSize)
		require.Equal(t, page('s'), got[:pageSize])
		require.Equal(t, page('b'), got[2*pageSize:])
		if !bytes.Equal(page('a'), got[pageSize:2*pageSize]) {
			lost++
		}
	}
	require.Greater(t, lost, 10)
	require.Less(t, lost, 40)
}

// Names are there for certain after SyncDir alone. A rename is never half done.
func TestAPowerCutTakesNamesThatWereNotSynced(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		d := diskWithDir(t, seed)
		s := d.Mount(nil)
		writeTo(t, s, "db/kept", page('k'), true)
		writeTo(t, s, "db/old", page('1'), true)
		f := writeTo(t, s, "db/new", page('2'), false)
		require.NoError(t, f.Sync())
		require.NoError(t, s.Rename("db/new", "db/old"))
		d.Cut()
		s = d.Mount(nil)
		_, err := readBack(t, s, "db/kept")
		require.NoError(t, err)
		got, err := readBack(t, s, "db/old")
		require.NoError(t, err, "one of the two has the name")
		_, err = readBack(t, s, "db/new")
		switch {
		case bytes.Equal(got, page('2')):
			seen["renamed"]++
			require.ErrorIs(t, err, fs.ErrNotExist)
		case err == nil:
			seen["created"]++
		default:
			seen["neither"]++
		}
		if !bytes.Equal(got, page('2')) {
			require.Equal(t, page('1'), got)
		}
	}
	require.Len(t, seen, 3, "all of it happens: %v", seen)
}

// A process that dies leaves all that it had written, and no locks.
func TestAProcessThatDiesLeavesWhatItWrote(t *testing.T) {
	d := diskWithDir(t, 1)
	s := d.Mount(nil)
	writeTo(t, s, "db/f", page('a'), false)
	_, err := s.Lock("db/LOCK", vfs.Exclusive)
	require.NoError(t, err)
	_, err = d.Mount(nil).Lock("db/LOCK", vfs.Shared)
	require.ErrorIs(t, err, vfs.ErrLocked)
	d.Kill()
	<-s.Gone()
	_, err = s.List("db")
	require.ErrorIs(t, err, ErrGone)
	s = d.Mount(nil)
	got, err := readBack(t, s, "db/f")
	require.NoError(t, err)
	require.Equal(t, page('a'), got)
	l, err := s.Lock("db/LOCK", vfs.Exclusive)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Equal(t, DiskCounts{Calls: d.Counts().Calls, Kills: 1}, d.Counts())
}

// A write may be cut off by an error, by the end of its process and by that of the power.
func TestWritesAreTorn(t *testing.T) {
	for _, o := range []Outcome{{Err: syscall.ENOSPC, Short: 5}, {Kill: true, Short: 5}, {Cut: true, Short: 5}} {
		d := diskWithDir(t, 1)
		s := d.Mount(func(c Call) Outcome {
			if c.Op == "write" {
				return o
			}
			return Outcome{}
		})
		f, err := s.Create("db/f")
		require.NoError(t, err)
		require.NoError(t, s.SyncDir("db"))
		n, err := f.Write([]byte("0123456789"))
		require.Equal(t, 5, n)
		require.True(t, errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrGone), err)
		if !o.Cut {
			got, err := readBack(t, d.Mount(nil), "db/f")
			require.NoError(t, err)
			require.Equal(t, "01234", string(got))
		}
	}
}

// Export writes what is on the disk to another, links being files of their own.
func TestExport(t *testing.T) {
	d := diskWithDir(t, 1)
	s := d.Mount(nil)
	writeTo(t, s, "db/a", page('a'), false)
	require.NoError(t, s.Link("db/a", "db/b"))
	require.ErrorIs(t, s.Link("db/a", "db/b"), fs.ErrExist)
	to := t.TempDir()
	require.NoError(t, d.Export("db", to))
	for _, name := range []string{"a", "b"} {
		got, err := os.ReadFile(filepath.Join(to, name))
		require.NoError(t, err)
		require.Equal(t, page('a'), got)
	}
	d.RemoveAll("db")
	_, err := s.List("db")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A fork has what is seen, and goes its own way.
func TestFork(t *testing.T) {
	d := diskWithDir(t, 1)
	s := d.Mount(nil)
	f := writeTo(t, s, "db/a", page('a'), false)
	require.NoError(t, s.Link("db/a", "db/b"))
	fork := d.Fork(2)
	_, err := f.Write(page('x'))
	require.NoError(t, err)
	fork.Cut()
	for _, name := range []string{"db/a", "db/b"} {
		got, err := readBack(t, fork.Mount(nil), name)
		require.NoError(t, err)
		require.Equal(t, page('a'), got)
	}
}

func TestOpenFiles(t *testing.T) {
	d := diskWithDir(t, 1)
	s := d.Mount(nil)
	w := writeTo(t, s, "db/a", page('a'), false)
	r, err := s.Open("db/a")
	require.NoError(t, err)
	l, err := s.Lock("db/LOCK", vfs.Shared)
	require.NoError(t, err)
	require.Equal(t, []string{"db/LOCK", "db/a"}, s.OpenFiles())
	for _, c := range []io.Closer{w, r, l} {
		require.NoError(t, c.Close())
	}
	require.Empty(t, s.OpenFiles())
	require.ErrorIs(t, r.Close(), fs.ErrClosed)
	require.Empty(t, s.OpenFiles())
}

// A process beside the others outlives them, with the locks that it has, but no power cut.
func TestAProcessBesideTheOthers(t *testing.T) {
	d := NewDisk(1)
	s, beside := d.Mount(nil), d.MountBeside(nil)
	require.NoError(t, s.MkdirAll("db"))
	_, err := s.Lock("db/CONSUMER", vfs.Existing)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, each := range []*Session{s, s, beside} {
		_, err := each.Lock("db/READERS", vfs.Shared)
		require.NoError(t, err)
	}
	d.Kill()
	next := d.Mount(nil)
	_, err = next.Lock("db/READERS", vfs.Exclusive)
	require.ErrorIs(t, err, vfs.ErrLocked)
	beside.Unmount()
	_, err = next.Lock("db/READERS", vfs.Exclusive)
	require.NoError(t, err)
	beside = d.MountBeside(nil)
	d.Cut()
	_, err = beside.List("db")
	require.ErrorIs(t, err, ErrGone)
}
