package version

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

var errTest = errors.New("test")

// A failingFS fails calls of files that it has created.
type failingFS struct {
	vfs.FS
	write, sync bool
}

func (f *failingFS) Create(name string) (vfs.WriteFile, error) {
	w, err := f.FS.Create(name)
	return failingFile{w, f}, err
}

type failingFile struct {
	vfs.WriteFile
	fs *failingFS
}

func (f failingFile) Write(b []byte) (int, error) {
	if f.fs.write {
		return 0, errTest
	}
	return f.WriteFile.Write(b)
}

func (f failingFile) Sync() error {
	if f.fs.sync {
		return errTest
	}
	return f.WriteFile.Sync()
}

func newManifestWriter(t *testing.T) (*ManifestWriter, *failingFS) {
	t.Helper()
	f := &failingFS{FS: vfs.NewMem()}
	require.NoError(t, f.MkdirAll("db"))
	num, c := uint64(1), &Cleaner{}
	c.wake.L = &c.mu
	w := &ManifestWriter{FS: f, Dir: "db", Logger: slog.New(slog.DiscardHandler), Cleaner: c, MaxSize: 1 << 20,
		NewNum: func() uint64 { num++; return num },
		Describe: func(v *Version) *manifest.Edit {
			e := &manifest.Edit{StoreID: 1}
			v.Describe(e)
			return e
		},
		Check: func() error { return nil }, Again: func(error) bool { return false },
		Retained: func(uint64) bool { return false }}
	require.NoError(t, w.Replace(&Version{}, 1))
	return w, f
}

// The files of an edit that was certainly not made go at once. Those of one that may be made go when a new manifest
// is in force, and with them the old manifest.
func TestFilesOfAnEditThatMayBeMadeAreKept(t *testing.T) {
	t.Parallel()
	const table = "db/000100.sst"
	for _, may := range []bool{false, true} {
		w, f := newManifestWriter(t)
		e := &manifest.Edit{Added: []manifest.AddedTable{{Table: tableOf(100)}}}
		f.write, f.sync = !may, may
		require.ErrorIs(t, w.Write(&Version{}, e), errTest)
		gone := slices.ContainsFunc(w.Cleaner.files, func(u unneededFile) bool { return u.name == table })
		require.Equal(t, !may, gone)
		f.write, f.sync = false, false
		require.NoError(t, w.Replace(&Version{}, w.NewNum()))
		require.ElementsMatch(t, []unneededFile{{name: table}, {name: "db/MANIFEST-000001"}}, w.Cleaner.files)
		require.Equal(t, uint64(2), w.Position().Manifest)
		require.NoError(t, w.Write(&Version{}, e))
	}
}

// An edit that finds no room is written to the manifest that takes the other's place.
func TestAnEditIsWrittenAgainWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	w, f := newManifestWriter(t)
	f.sync = true
	w.Again = func(err error) bool {
		require.ErrorIs(t, err, errTest)
		f.sync = false
		return true
	}
	require.NoError(t, w.Write(&Version{}, &manifest.Edit{LastSeq: 7}))
	require.Equal(t, uint64(2), w.Num())
	require.NoError(t, w.Close())
	s := NewManifestState()
	require.NoError(t, manifest.Load(f, "db", 2, s.Apply))
	require.EqualValues(t, 7, s.lastSeq)
}
