package kv

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
	"github.com/siftkv/siftkv/internal/vfs"
)

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	inTablesAndApart(t, testRestoreRefusesWhatDoesNotFit)
}

func testRestoreRefusesWhatDoesNotFit(t *testing.T, from int) {
	db, m0 := backupStoreFrom(t, from)
	full, mark0 := backUp(t, db, BackupMark{})
	m1 := addTables(t, db, m0, "second", 2)
	second, mark1 := backUp(t, db, mark0)
	m2 := addTables(t, db, m1, "third", 1)
	third, _ := backUp(t, db, mark1)
	require.Less(t, len(third), len(full))
	other, _ := backupStoreFrom(t, from)
	otherFull, otherMark := backUp(t, other, BackupMark{})
	otherSecond, _ := backUp(t, other, otherMark)
	_, err := db.Backup(t.Context(), io.Discard, otherMark)
	require.ErrorIs(t, err, ErrBackupMismatch)

	disk := vfs.NewMem()
	o := &Options{harness: harness.Harness{FS: disk}}
	restore := func(stream []byte) error { return Restore(t.Context(), bytes.NewReader(stream), "dir", o) }
	refuse := func(want error, streams ...[]byte) {
		t.Helper()
		before, _ := manifest.Restore(disk, "dir")
		for _, s := range streams {
			require.ErrorIs(t, restore(s), want)
			after, _ := manifest.Restore(disk, "dir")
			require.Equal(t, before, after)
		}
	}
	refuse(ErrBackupMismatch, second, third)
	refuse(ErrCorruption, []byte("no backup at all, but longer than a preamble"), full[100:])
	refuse(io.ErrUnexpectedEOF, full[:20])
	require.NoError(t, restore(full))
	refuse(ErrBackupMismatch, third, otherFull, otherSecond)
	require.NoError(t, restore(full), "once more changes nothing")
	requireRestored(t, disk, "dir", m0)
	require.NoError(t, restore(second))
	refuse(ErrBackupMismatch, full, otherSecond)
	require.NoError(t, restore(third))
	refuse(ErrBackupMismatch, second, full)
	requireRestored(t, disk, "dir", m2)

	require.NoError(t, Restore(t.Context(), bytes.NewReader(full), "written", o))
	w, err := Open("written", o)
	require.NoError(t, err)
	require.ErrorIs(t, Restore(t.Context(), bytes.NewReader(second), "written", o), vfs.ErrLocked)
	require.NoError(t, w.Close())
	err = Restore(t.Context(), bytes.NewReader(second), "written", o)
	require.ErrorIs(t, err, ErrBackupMismatch, "the store has been opened for writing")
	requireRestored(t, disk, "written", m0)

	require.NoError(t, disk.MkdirAll("foreign"))
	f, err := disk.Create("foreign/notes.txt")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.ErrorIs(t, Restore(t.Context(), bytes.NewReader(full), "foreign", o), ErrForeignDirectory)
	require.ErrorIs(t, Restore(t.Context(), bytes.NewReader(full), "", o), ErrInvalidOptions)
	require.ErrorIs(t, Restore(t.Context(), bytes.NewReader(full), "x", &Options{InMemory: true}), ErrInvalidOptions)
}

// A store that goes on to be restored keeps the files of its readers, which go on to
// the next backup when they refresh.
func TestReadersOfAStoreThatIsRestored(t *testing.T) {
	inTablesAndApart(t, testReadersOfAStoreThatIsRestored)
}

func testReadersOfAStoreThatIsRestored(t *testing.T, from int) {
	db, m0 := backupStoreFrom(t, from)
	full, mark := backUp(t, db, BackupMark{})
	m1 := addTables(t, db, m0, "second", 2)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	second, _ := backUp(t, db, mark)

	disk := vfs.NewMem()
	o := &Options{harness: harness.Harness{FS: disk}}
	require.NoError(t, Restore(t.Context(), bytes.NewReader(full), "dir", o))
	view, err := OpenReadOnly("dir", o)
	require.NoError(t, err)
	require.Error(t, Restore(t.Context(), bytes.NewReader(second[:len(second)/2]), "dir", o))
	require.NoError(t, view.Refresh(t.Context()))
	requireContents(t, m0, view)
	_, err = OpenReadOnly("dir", o)
	require.ErrorIs(t, err, ErrRestoreUnfinished)
	require.NoError(t, Restore(t.Context(), bytes.NewReader(second), "dir", o))
	requireContents(t, m0, view) // its tables are opened now
	require.NoError(t, view.Refresh(t.Context()))
	requireContents(t, m1, view)
	require.NoError(t, view.Close())

	w, err := Open("dir", o)
	require.NoError(t, err)
	requireOnlyLiveFiles(t, w)
	requireContents(t, m1, w)
	require.NoError(t, w.Close())
}

// TestRestoreGoesOn cuts streams at every offset, and goes on with the rest or with
// the whole; between, the directory is no store.
func TestRestoreGoesOn(t *testing.T) { inTablesAndApart(t, testRestoreGoesOn) }

func testRestoreGoesOn(t *testing.T, from int) {
	db, m0 := backupStoreFrom(t, from)
	full, mark := backUp(t, db, BackupMark{})
	m1 := addTables(t, db, m0, "second", 2)
	second, _ := backUp(t, db, mark)
	kept := 0
	for n := 0; n < len(full); n += scale.Stride(7, 1) {
		disk := vfs.NewMem()
		o := &Options{harness: harness.Harness{FS: disk}}
		err := Restore(t.Context(), bytes.NewReader(full[:n]), "dir", o)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut at %d", n)
		unfinished, ok := errors.AsType[*RestoreError](err)
		if !ok { // there was nothing yet
			require.Less(t, n, 100)
			require.NoError(t, Restore(t.Context(), bytes.NewReader(full), "dir", o))
			continue
		}
		require.ErrorIs(t, err, ErrRestoreUnfinished)
		require.LessOrEqual(t, unfinished.Offset, int64(n))
		if unfinished.Offset > 0 {
			kept++
		}
		for _, readOnly := range []bool{false, true} {
			_, err = Open("dir", &Options{harness: harness.Harness{FS: disk}, ReadOnly: readOnly})
			require.ErrorIs(t, err, ErrRestoreUnfinished)
		}
		rest := full[unfinished.Offset:]
		if n%2 == 0 {
			rest = full
		}
		require.ErrorIs(t, Restore(t.Context(), bytes.NewReader(second), "dir", o), ErrBackupMismatch)
		require.NoError(t, Restore(t.Context(), bytes.NewReader(rest), "dir", o), "cut at %d, rest from %d", n,
			unfinished.Offset)
		requireRestored(t, disk, "dir", m0)
		if n%20 > 0 {
			continue
		}
		cut := n % len(second)
		err = Restore(t.Context(), bytes.NewReader(second[:cut]), "dir", o)
		if unfinished, ok = errors.AsType[*RestoreError](err); ok {
			_, err = Open("dir", o)
			require.ErrorIs(t, err, ErrRestoreUnfinished)
			require.NoError(t, Restore(t.Context(), bytes.NewReader(second[unfinished.Offset:]), "dir", o))
		} else {
			require.NoError(t, Restore(t.Context(), bytes.NewReader(second), "dir", o))
		}
		requireRestored(t, disk, "dir", m1)
	}
	require.NotZero(t, kept)
}

// A restore since a mark that is given up leaves the store as it was.
func TestARestoreIsGivenUp(t *testing.T) { inTablesAndApart(t, testARestoreIsGivenUp) }

func testARestoreIsGivenUp(t *testing.T, from int) {
	db, m := backupStoreFrom(t, from)
	full, mark := backUp(t, db, BackupMark{})
	addTables(t, db, m, "second", 3)
	second, _ := backUp(t, db, mark)
	disk := vfs.NewMem()
	o := &Options{harness: harness.Harness{FS: disk}}
	require.NoError(t, Restore(t.Context(), bytes.NewReader(full), "dir", o))
	require.ErrorIs(t, Restore(t.Context(), bytes.NewReader(second[:len(second)-1]), "dir", o), ErrRestoreUnfinished)
	_, err := Open("dir", o)
	require.ErrorContains(t, err, "remove the file RESTORE")
	require.NoError(t, disk.Remove("dir/RESTORE"))
	requireRestored(t, disk, "dir", m)
	again, err := Open("dir", o)
	require.NoError(t, err)
	requireContents(t, m, again)
	require.NoError(t, again.Close())
}

// TestEveryByteOfABackupCounts damages a stream at every byte. Nothing of it becomes
// a store, and the whole stream is restored over it.
func TestEveryByteOfABackupCounts(t *testing.T) { inTablesAndApart(t, testEveryByteOfABackupCounts) }

func testEveryByteOfABackupCounts(t *testing.T, from int) {
	db, m := backupStoreFrom(t, from)
	full, _ := backUp(t, db, BackupMark{})
	disk := vfs.NewMem()
	o := &Options{harness: harness.Harness{FS: disk}}
	for n := 0; n < len(full); n += scale.Stride(5, 1) {
		bad := bytes.Clone(full)
		bad[n] ^= 1 << (n % 8)
		dir := strconv.Itoa(n)
		err := Restore(t.Context(), bytes.NewReader(bad), dir, o)
		if n >= 28 && n < 32 { // spare bytes of the preamble
			require.NoError(t, err)
			continue
		}
		for range 2 { // a length that is too large makes the stream end early
			require.True(t, errors.Is(err, ErrCorruption) || errors.Is(err, io.ErrUnexpectedEOF) ||
				errors.Is(err, ErrNewerFormat), "byte %d: %v", n, err)
			_, err = VerifyBackup(bytes.NewReader(bad))
		}
		_, err = Open(dir, &Options{harness: harness.Harness{FS: disk}, ReadOnly: true})
		require.True(t, errors.Is(err, ErrRestoreUnfinished) || errors.Is(err, ErrNotExist) ||
			errors.Is(err, fs.ErrNotExist), "%v", err)
		if n%10 == 0 {
			require.NoError(t, Restore(t.Context(), bytes.NewReader(full), dir, o))
			requireRestored(t, disk, dir, m)
		}
	}
}

// A table that was damaged or lost since the backup before is found before the store
// goes on to it.
func TestRestoreLooksAtTheTablesThatAreThere(t *testing.T) {
	t.Parallel()
	inTablesAndApart(t, testRestoreLooksAtTheTablesThatAreThere)
}

func testRestoreLooksAtTheTablesThatAreThere(t *testing.T, from int) {
	db, m := backupStoreFrom(t, from)
	full, mark := backUp(t, db, BackupMark{})
	addTables(t, db, m, "second", 1)
	second, _ := backUp(t, db, mark)
	for what, hurt := range map[string]func(name string){
		"missing": func(name string) { require.NoError(t, os.Remove(name)) },
		"cut":     func(name string) { require.NoError(t, os.Truncate(name, 100)) },
		"another": func(name string) { rewrite(t, name, flip(-32+int(fileSize(t, name)))) },
	} {
		for _, kind := range []string{"*.sst", "*.blob"} {
			dir := filepath.Join(t.TempDir(), "dir")
			require.NoError(t, Restore(t.Context(), bytes.NewReader(full), dir, nil))
			files, err := filepath.Glob(filepath.Join(dir, kind))
			require.NoError(t, err)
			if kind == "*.blob" && from == 0 {
				require.Empty(t, files)
				continue
			}
			hurt(files[0])
			err = Restore(t.Context(), bytes.NewReader(second), dir, nil)
			require.ErrorIs(t, err, ErrRestoreUnfinished, what)
			require.ErrorContains(t, err, files[0], what)
			_, err = Open(dir, nil)
			require.ErrorIs(t, err, ErrRestoreUnfinished, what)
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
	inTablesAndApart(t, testTheRestOfAStreamThatIsAwaited)
}

func testTheRestOfAStreamThatIsAwaited(t *testing.T, from int) {
	db, m := backupStoreFrom(t, from)
	stream, _ := backUp(t, db, BackupMark{})
	o := &Options{harness: harness.Harness{FS: vfs.NewMem()}}
	var broken *RestoreError
	rest := &lateReader{}
	rest.wait = func() {
		err := Restore(t.Context(), bytes.NewReader(stream[:len(stream)-50]), "dir", o)
		require.ErrorAs(t, err, &broken)
		require.Positive(t, broken.Offset)
		rest.Reader = bytes.NewReader(stream[broken.Offset:])
	}
	require.NoError(t, Restore(t.Context(), rest, "dir", o))
	requireRestored(t, o.harness.FS, "dir", m)
}
