package replay

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/internal/wal"
)

// A writer writes the logs of a store.
type writer struct {
	t    *testing.T
	fsys vfs.FS
	log  *wal.Writer
}

func (w *writer) newLog(num uint64) {
	f, err := w.fsys.Create(manifest.Path("db", manifest.FileWAL, num))
	require.NoError(w.t, err)
	w.log = wal.NewWriter(f, num)
	require.NoError(w.t, w.log.Sync())
}

func (w *writer) set(seq base.SeqNum) {
	var b batchrepr.Writer
	b.Add(base.KindSet, []byte("k"), nil)
	require.NoError(w.t, w.log.Append(b.Seal(seq)))
	require.NoError(w.t, w.log.Flush())
}

// A Follower reads on in a log that grows, and in the next one when the first was ended. Logs that go on after a write
// that is missing are ahead of the manifest. Those of tables are dropped.
func TestAFollowerReadsOn(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll("db"))
	edits, err := manifest.Create(fsys, "db", 1, &manifest.Edit{LogNum: 2})
	require.NoError(t, err)
	w := &writer{t: t, fsys: fsys}
	f := &Follower{FS: fsys, Dir: "db"}
	p := Replayer{FS: fsys, Dir: "db", Arena: 32 << 10, OwnTable: 16 << 10}
	read := func(ahead bool, last base.SeqNum, tables int) {
		t.Helper()
		require.NoError(t, f.ReadManifest(1))
		got, err := f.ReadLogs(&p, func() error { return nil })
		require.NoError(t, err)
		require.Equal(t, ahead, got)
		require.Equal(t, last, f.LastSeq)
		require.Len(t, f.Mems, tables)
	}
	require.NoError(t, f.Restart())
	require.Zero(t, f.Position())
	read(false, 0, 0) // a new store has its manifest before its log
	require.EqualValues(t, 1, f.Position().Manifest)

	w.newLog(2)
	w.set(1)
	read(false, 1, 1)
	w.set(2)
	first := w.log
	w.newLog(3)
	w.set(3)
	read(false, 2, 1) // the first log may grow
	require.NoError(t, first.Close())
	read(false, 3, 2)
	w.set(5)
	read(true, 5, 2)

	require.NoError(t, edits.Append(&manifest.Edit{LogNum: 3}))
	read(false, 5, 1)
	require.NoError(t, f.ReadManifest(1))
	w.set(6)
	ended := errors.New("ended")
	_, err = f.ReadLogs(&p, func() error { return ended })
	require.ErrorIs(t, err, ended)

	require.NoError(t, f.Restart())
	require.Zero(t, f.Position())
	require.Empty(t, f.Mems)
	read(true, 6, 1) // the first write of the log is number 3
	require.NoError(t, fsys.Remove(manifest.Path("db", manifest.FileWAL, 3)))
	w.newLog(4)
	require.NoError(t, f.Restart())
	require.NoError(t, f.ReadManifest(1))
	_, err = f.ReadLogs(&p, func() error { return nil })
	require.ErrorIs(t, err, base.ErrCorruption)
	require.NoError(t, f.Restart())
	require.NoError(t, edits.Close())
}

// logsOf makes logs from number 2 on with a write each, all ended, and returns a follower that has read the manifest.
func logsOf(t *testing.T, w *writer, fsys vfs.FS, n int) *Follower {
	require.NoError(t, w.fsys.MkdirAll("db"))
	edits, err := manifest.Create(w.fsys, "db", 1, &manifest.Edit{LogNum: 2})
	require.NoError(t, err)
	require.NoError(t, edits.Close())
	for i := range n {
		w.endedLog(uint64(i + 2))
	}
	f := &Follower{FS: fsys, Dir: "db"}
	require.NoError(t, f.Restart())
	require.NoError(t, f.ReadManifest(1))
	t.Cleanup(func() { require.NoError(t, f.Restart()) })
	return f
}

// endedLog makes a log with a write, whose sequence number is one less than that of the log.
func (w *writer) endedLog(num uint64) {
	w.newLog(num)
	w.set(base.SeqNum(num - 1))
	require.NoError(w.t, w.log.Close())
}

// A writer that makes logs faster than a follower reads them does not keep it: it reads those that there were, and
// lists the directory once. They are many if it was away.
func TestAFollowerIsNotKeptByAWriter(t *testing.T) {
	t.Parallel()
	fsys := &vfstest.FaultFS{FS: vfs.NewMem()}
	w := &writer{t: t, fsys: fsys.FS}
	const logs = 40
	f := logsOf(t, w, fsys, logs)
	next, lists := uint64(logs+2), 0
	fsys.Set(func(c vfstest.Call) (int, error) {
		switch c.Op {
		case "list":
			lists++
		case "open":
			if next < 10*logs {
				w.endedLog(next)
				next++
			}
		}
		return 0, nil
	})
	p := Replayer{FS: fsys, Dir: "db", Arena: 32 << 10, OwnTable: 16 << 10}
	ahead, err := f.ReadLogs(&p, func() error { return nil })
	require.NoError(t, err)
	require.False(t, ahead)
	require.EqualValues(t, logs+1, f.LastSeq) // the first was opened before they were listed
	require.Equal(t, 1, lists)
}

// A log that the writer removes after a follower has listed it is left out.
func TestAFollowerGoesOnAfterLogsThatAreGone(t *testing.T) {
	t.Parallel()
	fsys := &vfstest.FaultFS{FS: vfs.NewMem()}
	w := &writer{t: t, fsys: fsys.FS}
	f := logsOf(t, w, fsys, 8)
	opened := 0
	fsys.Set(func(c vfstest.Call) (int, error) {
		if c.Op == "open" {
			if opened++; opened == 3 {
				for num := range uint64(3) {
					require.NoError(t, fsys.FS.Remove(manifest.Path("db", manifest.FileWAL, num+5)))
				}
			}
		}
		return 0, nil
	})
	p := Replayer{FS: fsys, Dir: "db", Arena: 32 << 10, OwnTable: 16 << 10}
	ahead, err := f.ReadLogs(&p, func() error { return nil })
	require.NoError(t, err)
	require.True(t, ahead, "writes are missing")
	require.EqualValues(t, 8, f.LastSeq)
}
