package storetest

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/version"
)

// Verify checks the files of an open store, a *kv.DB, as kv.Verify does those of a closed one. It prints what it finds.
func Verify(db any, w io.Writer) error {
	s, release, err := harness.FilesOf(db)
	if err != nil {
		return err
	}
	defer release()
	var errs []error
	s.Version.All(func(level int, t *version.Table) {
		err := verifyTable(t, s)
		_, printed := fmt.Fprintf(w, "L%d %s %d bytes, %d entries: %v\n", level, t.Name(), t.Size, t.Entries, err)
		errs = append(errs, err, printed)
	})
	for b := range s.Version.Blobs() {
		r, err := b.Open(s.Blobs)
		if err == nil {
			err = r.Verify(b.Num, nil)
		}
		_, printed := fmt.Fprintf(w, "%s %d bytes, %d records: %v\n", b.Name(), b.Size, b.Records, err)
		errs = append(errs, err, printed)
	}
	return errors.Join(append(errs, s.Version.RecountBlobs())...)
}

func verifyTable(t *version.Table, s *harness.Files) error {
	r, err := t.Open(s.Tables)
	if err != nil {
		return err
	}
	info, err := r.Info()
	if err != nil {
		return err
	}
	return errors.Join(r.Verify(), survey.Agree(&t.Table, info))
}

// RecountBlobs returns an error if a store's totals of blob files are not those of its tables. The store is a *kv.DB.
func RecountBlobs(db any) error {
	s, release, err := harness.FilesOf(db)
	if err != nil {
		return err
	}
	defer release()
	return s.Version.RecountBlobs()
}

// RequireBlobs requires that a store's totals of blob files are those of its tables. Its directory must have the blob
// files of its version, those that memtables keep, and no others. It returns how many there are. The store is a *kv.DB.
func RequireBlobs(t testing.TB, db any) int {
	t.Helper()
	harness.Settle(db)
	s, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	defer release()
	require.NoError(t, s.Version.RecountBlobs())
	var want []string
	for _, b := range s.Unlisted {
		want = append(want, b.Name())
	}
	for b := range s.Version.Blobs() {
		want = append(want, b.Name())
	}
	slices.Sort(want)
	want = slices.Compact(want) // a version may list what a memtable still keeps
	names, err := s.FS.List(s.Dir)
	require.NoError(t, err)
	var have []string
	for _, name := range names {
		if kind, _ := manifest.ParseFileName(name); kind == manifest.FileBlob {
			have = append(have, name)
		}
	}
	require.ElementsMatch(t, want, have)
	return len(have)
}

// BlobNames returns the paths of the blob files of a store's version. The store is a *kv.DB that is settled.
func BlobNames(t testing.TB, db any) (names []string) {
	t.Helper()
	s, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	defer release()
	for b := range s.Version.Blobs() {
		names = append(names, filepath.Join(s.Dir, b.Name()))
	}
	return names
}

// RequireOnlyLiveFiles requires that a store's directory has no obsolete file once the store has settled: a file that a
// compaction is writing is not live yet. The store is a *kv.DB.
func RequireOnlyLiveFiles(t testing.TB, db any) {
	t.Helper()
	harness.Settle(db)
	s, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	defer release()
	live := map[uint64]bool{}
	s.Version.All(func(_ int, t *version.Table) { live[t.Num] = true })
	for b := range s.Version.Blobs() {
		live[b.Num] = true
	}
	current, err := manifest.Current(s.FS, s.Dir)
	require.NoError(t, err)
	names, err := s.FS.List(s.Dir)
	require.NoError(t, err)
	for _, name := range names {
		switch kind, num := manifest.ParseFileName(name); kind {
		case manifest.FileTable, manifest.FileBlob:
			require.True(t, live[num], name)
		case manifest.FileWAL:
			require.GreaterOrEqual(t, num, s.LogNum, name)
		case manifest.FileManifest:
			require.Equal(t, current, num, name)
		}
	}
}

// RequireDamage checks that an error matches ErrCorruption. It must name the file, the offset (if it is known) and the
// command to run.
func RequireDamage(t testing.TB, err error, name string, offset int64) {
	t.Helper()
	require.ErrorIs(t, err, base.ErrCorruption)
	var damage *base.CorruptionError
	require.ErrorAs(t, err, &damage)
	require.Equal(t, name, damage.File)
	require.ErrorContains(t, err, name)
	if offset >= 0 {
		require.Equal(t, offset, damage.Offset, err.Error())
		require.ErrorContains(t, err, fmt.Sprintf("offset %d", offset))
	}
	require.ErrorContains(t, err, "verify "+filepath.Dir(name))
}
