package version

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/stretchr/testify/require"
)

type unlistableFS struct{ vfs.FS }

func (unlistableFS) List(string) ([]string, error) { return nil, errors.New("no") }

// While nobody knows which readers there are, obsolete files are held, and counted.
func TestFilesAreHeldWhileReadersAreNotKnown(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	c := &Cleaner{FS: unlistableFS{mem}, Dir: "db", Log: slog.New(slog.DiscardHandler),
		Position: func() manifest.Position { return manifest.Position{Manifest: 1} }}
	files := []unneededFile{{"db/a", 1}, {"db/b", 2}}
	require.Empty(t, c.removable(files))
	require.Equal(t, 2, c.Held())
	c.FS = mem
	require.Equal(t, files, c.removable(nil))
	require.Zero(t, c.Held())
}

// A caller that waits for files to be removed waits no longer than its context lasts.
func TestWaitForTheCleanerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Cleaner{busy: true}
		c.wake.L = &c.mu
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.WaitContext(ctx) }()
		synctest.Wait()
		require.Empty(t, ended)
		cancel()
		require.ErrorIs(t, <-ended, base.ErrContextEnded)
	})
}

// What a crash has left is handed in by its number, and a half-written file goes at once. Others' files stay.
func TestSweepFindsWhatNothingNeeds(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	for _, name := range []string{"000001.sst", "000002.sst", "000003.blob", "000004.wal", "000005.wal",
		"MANIFEST-000006", "MANIFEST-000007", "RESTORE", "INGEST-000008-000009", "CURRENT", "LOCK", "CURRENT.tmp",
		"notes"} {
		f, err := mem.Create("db/" + name)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	v, err := (&Version{}).Apply(&manifest.Edit{Added: []manifest.AddedTable{{Table: tableOf(2)}}})
	require.NoError(t, err)
	c := &Cleaner{FS: mem, Dir: "db", Log: slog.New(slog.DiscardHandler)}
	c.wake.L = &c.mu
	c.Sweep(v, 5, 7)
	var names []string
	for _, f := range c.files {
		names = append(names, strings.TrimPrefix(f.name, "db/"))
	}
	require.ElementsMatch(t, []string{"000001.sst", "000003.blob", "000004.wal", "MANIFEST-000006", "RESTORE",
		"INGEST-000008-000009"}, names)
	_, err = mem.Stat("db/CURRENT.tmp")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = mem.Stat("db/notes")
	require.NoError(t, err)
}

// A half-written file that cannot be removed is logged with its path, and so is an obsolete one.
func TestFilesThatStayAreNamedByTheirPaths(t *testing.T) {
	t.Parallel()
	faults := &vfstest.FaultFS{FS: vfs.NewMem()}
	require.NoError(t, faults.MkdirAll("db"))
	f, err := faults.Create("db/CURRENT.tmp")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	faults.Set(func(c vfstest.Call) (_ int, err error) {
		if c.Op == "remove" {
			err = fs.ErrPermission
		}
		return 0, err
	})
	var logged strings.Builder
	c := &Cleaner{FS: faults, Dir: "db", Log: slog.New(slog.NewTextHandler(&logged, nil))}
	c.Sweep(&Version{}, 5, 7)
	require.Contains(t, logged.String(), "file="+filepath.Join("db", "CURRENT.tmp")+" ")
	path := filepath.Join("db", "000004.wal")
	c.closed(nil, unneededFile{name: path}, fs.ErrPermission, false)
	require.Contains(t, logged.String(), "file="+path+" ")
}

func tableOf(num uint64) manifest.Table {
	return manifest.Table{Num: num, Size: 3, Smallest: []byte("a"), Largest: []byte("b"), SmallestSeq: 1, LargestSeq: 1,
		Entries: 1}
}
