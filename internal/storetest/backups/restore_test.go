package backups

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	stores.InTablesAndSeparated(t, testRestoreRefusesWhatDoesNotFit)
}

func testRestoreRefusesWhatDoesNotFit(t *testing.T, from int) {
	db, m0 := stores.OfTables(t, from)
	full, mark0 := stores.BackUp(t, db, kv.BackupMark{})
	m1 := stores.AddTables(t, db, m0, "second", 2)
	second, mark1 := stores.BackUp(t, db, mark0)
	m2 := stores.AddTables(t, db, m1, "third", 1)
	third, _ := stores.BackUp(t, db, mark1)
	require.Less(t, len(third), len(full))
	other, _ := stores.OfTables(t, from)
	otherFull, otherMark := stores.BackUp(t, other, kv.BackupMark{})
	otherSecond, _ := stores.BackUp(t, other, otherMark)
	_, err := db.Backup(t.Context(), io.Discard, otherMark)
	require.ErrorIs(t, err, kv.ErrBackupMismatch)

	disk := vfs.NewMem()
	o := stores.With(harness.Harness{FS: disk}, &kv.Options{})
	restore := func(stream []byte) error { return kv.Restore(t.Context(), bytes.NewReader(stream), "dir", o) }
	refuse := func(want error, streams ...[]byte) {
		t.Helper()
		before, _ := manifest.Restore(disk, "dir")
		for _, s := range streams {
			require.ErrorIs(t, restore(s), want)
			after, _ := manifest.Restore(disk, "dir")
			require.Equal(t, before, after)
		}
	}
	refuse(kv.ErrBackupMismatch, second, third)
	refuse(kv.ErrCorruption, []byte("no backup at all, but longer than a preamble"), full[100:])
	refuse(io.ErrUnexpectedEOF, full[:20])
	require.NoError(t, restore(full))
	refuse(kv.ErrBackupMismatch, third, otherFull, otherSecond)
	require.NoError(t, restore(full), "once more changes nothing")
	stores.RequireRestored(t, disk, "dir", m0)
	require.NoError(t, restore(second))
	refuse(kv.ErrBackupMismatch, full, otherSecond)
	require.NoError(t, restore(third))
	refuse(kv.ErrBackupMismatch, second, full)
	stores.RequireRestored(t, disk, "dir", m2)

	require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(full), "written", o))
	w, err := kv.Open("written", o)
	require.NoError(t, err)
	require.ErrorIs(t, kv.Restore(t.Context(), bytes.NewReader(second), "written", o), vfs.ErrLocked)
	require.NoError(t, w.Close())
	err = kv.Restore(t.Context(), bytes.NewReader(second), "written", o)
	require.ErrorIs(t, err, kv.ErrBackupMismatch, "the store has been opened for writing")
	stores.RequireRestored(t, disk, "written", m0)

	require.NoError(t, disk.MkdirAll("foreign"))
	f, err := disk.Create("foreign/notes.txt")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.ErrorIs(t, kv.Restore(t.Context(), bytes.NewReader(full), "foreign", o), kv.ErrForeignDirectory)
	require.ErrorIs(t, kv.Restore(t.Context(), bytes.NewReader(full), "", o), kv.ErrInvalidOptions)
	require.ErrorIs(t, kv.Restore(t.Context(), bytes.NewReader(full), "x",
		&kv.Options{InMemory: true}), kv.ErrInvalidOptions)
}

// A store that goes on to be restored keeps the files of its readers, which go on to
// the next backup when they refresh.
func TestReadersOfAStoreThatIsRestored(t *testing.T) {
	stores.InTablesAndSeparated(t, testReadersOfAStoreThatIsRestored)
}

func testReadersOfAStoreThatIsRestored(t *testing.T, from int) {
	db, m0 := stores.OfTables(t, from)
	full, mark := stores.BackUp(t, db, kv.BackupMark{})
	m1 := stores.AddTables(t, db, m0, "second", 2)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	second, _ := stores.BackUp(t, db, mark)

	disk := vfs.NewMem()
	o := stores.With(harness.Harness{FS: disk}, &kv.Options{})
	require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(full), "dir", o))
	view, err := kv.OpenReadOnly("dir", o)
	require.NoError(t, err)
	require.Error(t, kv.Restore(t.Context(), bytes.NewReader(second[:len(second)/2]), "dir", o))
	require.NoError(t, view.Refresh(t.Context()))
	storetest.RequireContents(t, m0, view)
	_, err = kv.OpenReadOnly("dir", o)
	require.ErrorIs(t, err, kv.ErrRestoreUnfinished)
	require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(second), "dir", o))
	storetest.RequireContents(t, m0, view) // its tables are opened now
	require.NoError(t, view.Refresh(t.Context()))
	storetest.RequireContents(t, m1, view)
	require.NoError(t, view.Close())

	w, err := kv.Open("dir", o)
	require.NoError(t, err)
	storetest.RequireOnlyLiveFiles(t, w)
	storetest.RequireContents(t, m1, w)
	require.NoError(t, w.Close())
}

// TestRestoreGoesOn cuts streams at every offset, and goes on with the rest or with
// the whole; between, the directory is no store.
func TestRestoreGoesOn(t *testing.T) { stores.InTablesAndSeparated(t, testRestoreGoesOn) }

func testRestoreGoesOn(t *testing.T, from int) {
	db, m0 := stores.OfTables(t, from)
	full, mark := stores.BackUp(t, db, kv.BackupMark{})
	m1 := stores.AddTables(t, db, m0, "second", 2)
	second, _ := stores.BackUp(t, db, mark)
	kept := 0
	for n := 0; n < len(full); n += scale.Stride(7, 1) {
		disk := vfs.NewMem()
		o := stores.With(harness.Harness{FS: disk}, &kv.Options{})
		err := kv.Restore(t.Context(), bytes.NewReader(full[:n]), "dir", o)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut at %d", n)
		unfinished, ok := errors.AsType[*kv.RestoreError](err)
		if !ok { // there was nothing yet
			require.Less(t, n, 100)
			require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(full), "dir", o))
			continue
		}
		require.ErrorIs(t, err, kv.ErrRestoreUnfinished)
		require.LessOrEqual(t, unfinished.Offset, int64(n))
		if unfinished.Offset > 0 {
			kept++
		}
		for _, readOnly := range []bool{false, true} {
			_, err = kv.Open("dir", stores.With(harness.Harness{FS: disk}, &kv.Options{ReadOnly: readOnly}))
			require.ErrorIs(t, err, kv.ErrRestoreUnfinished)
		}
		rest := full[unfinished.Offset:]
		if n%2 == 0 {
			rest = full
		}
		require.ErrorIs(t, kv.Restore(t.Context(), bytes.NewReader(second), "dir", o), kv.ErrBackupMismatch)
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(rest), "dir", o), "cut at %d, rest from %d", n,
			unfinished.Offset)
		stores.RequireRestored(t, disk, "dir", m0)
		if n%20 > 0 {
			continue
		}
		cut := n % len(second)
		err = kv.Restore(t.Context(), bytes.NewReader(second[:cut]), "dir", o)
		if unfinished, ok = errors.AsType[*kv.RestoreError](err); ok {
			_, err = kv.Open("dir", o)
			require.ErrorIs(t, err, kv.ErrRestoreUnfinished)
			require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(second[unfinished.Offset:]), "dir", o))
		} else {
			require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(second), "dir", o))
		}
		stores.RequireRestored(t, disk, "dir", m1)
	}
	require.NotZero(t, kept)
}

// A restore since a mark that is given up leaves the store as it was.
func TestARestoreIsGivenUp(t *testing.T) { stores.InTablesAndSeparated(t, testARestoreIsGivenUp) }

func testARestoreIsGivenUp(t *testing.T, from int) {
	db, m := stores.OfTables(t, from)
	full, mark := stores.BackUp(t, db, kv.BackupMark{})
	stores.AddTables(t, db, m, "second", 3)
	second, _ := stores.BackUp(t, db, mark)
	disk := vfs.NewMem()
	o := stores.With(harness.Harness{FS: disk}, &kv.Options{})
	require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(full), "dir", o))
	require.ErrorIs(t, kv.Restore(t.Context(), bytes.NewReader(second[:len(second)-1]), "dir", o),
		kv.ErrRestoreUnfinished)
	_, err := kv.Open("dir", o)
	require.ErrorContains(t, err, "remove the file RESTORE")
	require.NoError(t, disk.Remove("dir/RESTORE"))
	stores.RequireRestored(t, disk, "dir", m)
	again, err := kv.Open("dir", o)
	require.NoError(t, err)
	storetest.RequireContents(t, m, again)
	require.NoError(t, again.Close())
}

// TestEveryByteOfABackupCounts damages a stream at every byte. Nothing of it becomes
// a store, and the whole stream is restored over it.
func TestEveryByteOfABackupCounts(t *testing.T) {
	stores.InTablesAndSeparated(t, testEveryByteOfABackupCounts)
}

func testEveryByteOfABackupCounts(t *testing.T, from int) {
	db, m := stores.OfTables(t, from)
	full, _ := stores.BackUp(t, db, kv.BackupMark{})
	disk := vfs.NewMem()
	o := stores.With(harness.Harness{FS: disk}, &kv.Options{})
	for n := 0; n < len(full); n += scale.Stride(5, 1) {
		bad := bytes.Clone(full)
		bad[n] ^= 1 << (n % 8)
		dir := strconv.Itoa(n)
		err := kv.Restore(t.Context(), bytes.NewReader(bad), dir, o)
		if n >= 28 && n < 32 { // spare bytes of the preamble
			require.NoError(t, err)
			continue
		}
		for range 2 { // a length that is too large makes the stream end early
			require.True(t, errors.Is(err, kv.ErrCorruption) || errors.Is(err, io.ErrUnexpectedEOF) ||
				errors.Is(err, kv.ErrNewerFormat), "byte %d: %v", n, err)
			_, err = kv.VerifyBackup(bytes.NewReader(bad))
		}
		_, err = kv.Open(dir, stores.With(harness.Harness{FS: disk}, &kv.Options{ReadOnly: true}))
		require.True(t, errors.Is(err, kv.ErrRestoreUnfinished) || errors.Is(err, kv.ErrNotExist) ||
			errors.Is(err, fs.ErrNotExist), "%v", err)
		if n%10 == 0 {
			require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(full), dir, o))
			stores.RequireRestored(t, disk, dir, m)
		}
	}
}

// A table that was damaged or lost since the backup before is found before the store
// goes on to it.
func TestRestoreLooksAtTheTablesThatAreThere(t *testing.T) {
	t.Parallel()
	stores.InTablesAndSeparated(t, testRestoreLooksAtTheTablesThatAreThere)
}

func testRestoreLooksAtTheTablesThatAreThere(t *testing.T, from int) {
	db, m := stores.OfTables(t, from)
	full, mark := stores.BackUp(t, db, kv.BackupMark{})
	stores.AddTables(t, db, m, "second", 1)
	second, _ := stores.BackUp(t, db, mark)
	for what, hurt := range map[string]func(name string){
		"missing": func(name string) { require.NoError(t, os.Remove(name)) },
		"cut":     func(name string) { require.NoError(t, os.Truncate(name, 100)) },
		"another": func(name string) { storetest.Rewrite(t, name, storetest.Flip(-32+int(fileSize(t, name)))) },
	} {
		for _, kind := range []string{"*.sst", "*.blob"} {
			dir := filepath.Join(t.TempDir(), "dir")
			require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(full), dir, nil))
			files, err := filepath.Glob(filepath.Join(dir, kind))
			require.NoError(t, err)
			if kind == "*.blob" && from == 0 {
				require.Empty(t, files)
				continue
			}
			hurt(files[0])
			err = kv.Restore(t.Context(), bytes.NewReader(second), dir, nil)
			require.ErrorIs(t, err, kv.ErrRestoreUnfinished, what)
			require.ErrorContains(t, err, files[0], what)
			_, err = kv.Open(dir, nil)
			require.ErrorIs(t, err, kv.ErrRestoreUnfinished, what)
		}
	}
}

func fileSize(t *testing.T, name string) int64 {
	t.Helper()
	size, err := vfs.OS.Stat(name)
	require.NoError(t, err)
	return size
}

// A lateReader is a stream that waits for something before it gives its first byte.
type lateReader struct {
	io.Reader
	wait func()
}

func (r *lateReader) Read(b []byte) (int, error) {
	if r.wait != nil {
		r.wait()
		r.wait = nil
	}
	return r.Reader.Read(b)
}

// What follows an offset may be awaited before the restore that it goes on from has
// broken off.
func TestTheRestOfAStreamThatIsAwaited(t *testing.T) {
	stores.InTablesAndSeparated(t, testTheRestOfAStreamThatIsAwaited)
}

func testTheRestOfAStreamThatIsAwaited(t *testing.T, from int) {
	db, m := stores.OfTables(t, from)
	stream, _ := stores.BackUp(t, db, kv.BackupMark{})
	o := stores.With(harness.Harness{FS: vfs.NewMem()}, &kv.Options{})
	var broken *kv.RestoreError
	rest := &lateReader{}
	rest.wait = func() {
		err := kv.Restore(t.Context(), bytes.NewReader(stream[:len(stream)-50]), "dir", o)
		require.ErrorAs(t, err, &broken)
		require.Positive(t, broken.Offset)
		rest.Reader = bytes.NewReader(stream[broken.Offset:])
	}
	require.NoError(t, kv.Restore(t.Context(), rest, "dir", o))
	stores.RequireRestored(t, harness.Of(o).FS, "dir", m)
}
