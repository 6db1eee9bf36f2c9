package survey_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// A renamingFS is a directory in which a writer renames files as soon as they are listed.
type renamingFS struct {
	vfs.FS
	to map[string]string
}

func (f renamingFS) List(dir string) (names []string, err error) {
	for before, after := range f.to {
		err = errors.Join(err, os.Rename(after, before))
	}
	names, listed := f.FS.List(dir)
	for before, after := range f.to {
		err = errors.Join(err, os.Rename(before, after))
	}
	return names, errors.Join(err, listed)
}

// A writer may rename a file that only a slot needs after a survey has listed it.
func TestFilesThatAreRenamedBesideASurvey(t *testing.T) {
	dir := t.TempDir()
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 1000, SeparateAtCommit: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	slot, snapshot, err := db.CreateSlot(t.Context(), "s")
	require.NoError(t, err)
	require.NoError(t, snapshot.Close())
	require.NoError(t, slot.Close())
	require.NoError(t, db.Set([]byte("key"), bytes.Repeat([]byte("large"), 1000), nil))
	require.NoError(t, db.Delete([]byte("key"), nil))
	require.NoError(t, db.Compact(t.Context(), nil, nil))

	fsys := renamingFS{vfs.OS, map[string]string{}}
	var kept []string
	require.Eventually(t, func() bool {
		kept, err = filepath.Glob(filepath.Join(dir, "*.kept"))
		return err == nil && len(kept) == 2
	}, time.Minute, time.Millisecond)
	for _, name := range kept {
		_, num := manifest.ParseFileName(filepath.Base(name))
		kind := manifest.FileWAL
		if file, err := os.ReadFile(name); err == nil && bytes.Contains(file, []byte("largelarge")) {
			kind = manifest.FileBlob
		}
		fsys.to[manifest.Path(dir, kind, num)] = name
	}
	s, err := doctor.Verify(t.Context(), dir, survey.Options{FS: fsys, BesideWriter: true})
	require.NoError(t, err)
	require.Empty(t, s.Damage)
}
