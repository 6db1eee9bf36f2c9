package changelog

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/internal/wal"
)

// writeLog writes a log with a record for each number, and its end unless it is to be without.
func writeLog(t *testing.T, fsys vfs.FS, num uint64, first, last base.SeqNum, ended bool) *wal.Writer {
	t.Helper()
	f, err := fsys.Create(manifest.Path("db", manifest.FileWAL, num))
	require.NoError(t, err)
	w := wal.NewWriter(f, num)
	for seq := first; seq <= last; seq++ {
		var b batchrepr.Writer
		b.Add(base.KindSet, fmt.Append(nil, seq), nil)
		require.NoError(t, w.Append(b.Seal(seq)))
	}
	if ended {
		require.NoError(t, w.End())
	}
	require.NoError(t, w.Sync())
	return w
}

// copied returns the numbers that a copy has.
func copied(t *testing.T, fsys vfs.FS, p manifest.KeptPart) (seqs []base.SeqNum) {
	t.Helper()
	f, err := fsys.Open("db/" + p.LogName())
	require.NoError(t, err)
	r := wal.NewReader(f, "", p.Log)
	for {
		record, err := r.Next()
		if err != nil {
			require.True(t, r.Clean())
			return seqs
		}
		b, err := batchrepr.NewReader(record)
		require.NoError(t, err)
		seqs = append(seqs, b.Seq())
	}
}

func TestACopyHasTheHistoryAlone(t *testing.T) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll("db"))
	writeLog(t, fsys, 5, 1, 4, true)
	torn := writeLog(t, fsys, 6, 5, 8, false) // 8 has failed
	c := Copier{FS: fsys, Dir: "db"}
	p, err := c.copy([]uint64{5, 6}, 2, 7, 9)
	require.NoError(t, err)
	require.Equal(t, manifest.KeptPart{Log: 9, Copy: true, Last: 7, Bytes: p.Bytes}, p)
	require.Equal(t, []base.SeqNum{3, 4, 5, 6, 7}, copied(t, fsys, p))
	parts, err := c.Keep([]uint64{5, 6}, 7, 7, nil)
	require.NoError(t, err)
	require.Empty(t, parts)
	_, err = c.copy([]uint64{5, 6}, 2, 9, 10)
	require.ErrorIs(t, err, errHole)
	_, err = fsys.Stat("db/000010.kept")
	require.ErrorIs(t, err, fs.ErrNotExist)

	// What the file does not have comes from memory.
	var b batchrepr.Writer
	b.Add(base.KindSet, []byte("9"), nil)
	require.NoError(t, torn.Append(b.Seal(9)))
	c.Whole = func(log uint64, f vfs.ReadFile) vfs.ReadFile {
		if log == 6 {
			return torn.Whole(f)
		}
		return f
	}
	p, err = c.copy([]uint64{5, 6}, 7, 9, 11)
	require.NoError(t, err)
	require.Equal(t, []base.SeqNum{8, 9}, copied(t, fsys, p))
}

// A log without its end may lack records. So the next record must be the one that follows.
func TestACopyHasNoHole(t *testing.T) {
	for _, first := range []base.SeqNum{5, 6} {
		fsys := vfs.NewMem()
		require.NoError(t, fsys.MkdirAll("db"))
		writeLog(t, fsys, 5, 1, 4, false)
		f, err := fsys.Create("db/000006.wal") // was never used
		require.NoError(t, err)
		require.NoError(t, f.Close())
		writeLog(t, fsys, 7, first, 8, true)
		c := Copier{FS: fsys, Dir: "db"}
		p, err := c.copy([]uint64{5, 6, 7}, 0, 8, 9)
		if first == 6 {
			require.ErrorIs(t, err, errHole)
			p, err = c.copy([]uint64{5, 6, 7}, 0, 4, 9)
		}
		require.NoError(t, err)
		require.Len(t, copied(t, fsys, p), int(p.Last))
	}
}

// What may pass is tried again, up to a bound. What is not there is lost at once.
func TestWhenACopyFails(t *testing.T) {
	l := newLog(t, vfs.NewMem())
	l.begin(t, "a", 5)
	for range maxCopyFailures - 1 {
		require.ErrorIs(t, l.CopyFailed(fs.ErrPermission), fs.ErrPermission)
	}
	require.NoError(t, l.CopyFailed(nil))
	for range maxCopyFailures - 1 {
		require.Error(t, l.CopyFailed(fs.ErrPermission))
	}
	require.True(t, l.Active())
	require.NoError(t, l.CopyFailed(fs.ErrPermission))
	require.False(t, l.Active())
	l.begin(t, "b", 6)
	require.NoError(t, l.CopyFailed(errHole))
	require.False(t, l.Active())
}

func TestLogsThatStayInPlace(t *testing.T) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll("db"))
	writeLog(t, fsys, 5, 1, 4, true)
	writeLog(t, fsys, 6, 5, 8, true)
	writeLog(t, fsys, 7, 9, 9, false)
	c := Copier{FS: fsys, Dir: "db"}
	parts, ok, _ := c.inPlace([]uint64{5, 6}, 4, 8)
	require.True(t, ok)
	size, err := fsys.Stat("db/000006.wal")
	require.NoError(t, err)
	require.Equal(t, []manifest.KeptPart{{Log: 6, Last: 8, Bytes: size}}, parts, "all of 5 is in tables")
	for what, not := range map[string]func() bool{
		"7 has no end":      func() bool { _, ok, _ := c.inPlace([]uint64{5, 6, 7}, 2, 9); return ok },
		"8 is no history":   func() bool { _, ok, _ := c.inPlace([]uint64{5, 6}, 2, 7); return ok },
		"there is no 10":    func() bool { _, ok, _ := c.inPlace([]uint64{5, 6}, 2, 10); return ok },
		"there is no log 4": func() bool { _, ok, _ := c.inPlace([]uint64{4, 5}, 0, 4); return ok },
		"nothing can sync them": func() bool {
			_, ok, _ := (&Copier{FS: &vfstest.FaultFS{FS: fsys}, Dir: "db"}).inPlace([]uint64{5}, 0, 4)
			return ok
		},
	} {
		require.False(t, not(), what)
	}
}

// A fullDisk fails to sync files, once, and has no room for others.
type fullDisk struct {
	vfs.FS
	synced bool
}

func (d *fullDisk) SyncFile(string) error {
	if d.synced {
		return nil
	}
	d.synced = true
	return syscall.EIO
}

func (d *fullDisk) Create(string) (vfs.WriteFile, error) { return nil, syscall.ENOSPC }

// A log whose sync has failed is no history unless it was copied: the next attempt would take it for whole.
func TestASyncThatFailsLosesWhatIsNotCopied(t *testing.T) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll("db"))
	writeLog(t, fsys, 5, 1, 4, true)
	next := func() uint64 { return 9 }
	c := Copier{FS: &fullDisk{FS: fsys}, Dir: "db", Clean: true}
	_, err := c.Keep([]uint64{5}, 0, 4, next)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorIs(t, err, syscall.EIO)
	require.False(t, Passes(err))
	c.Clean = false
	_, err = c.Keep([]uint64{5}, 0, 4, next)
	require.True(t, Passes(err))
	c.FS, c.Clean = fsys, true
	parts, err := c.Keep([]uint64{5}, 0, 4, next)
	require.NoError(t, err)
	require.False(t, parts[0].Copy)
}
