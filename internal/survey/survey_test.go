package survey_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/survey/shape"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// goldenStore is a store of version 1 of the format, closed cleanly.
const goldenStore = "../../kv/testdata/store-v1"

func copyStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS(goldenStore)))
	return dir
}

// endMark is the size of the mark at the end of a log that was closed.
const endMark = 15

// Verify finds a flipped bit in every byte of every file. LONG=7 tries every byte.
func TestVerifyFindsFlippedBits(t *testing.T) {
	step := scale.Stride(7, 7)
	dir := copyStore(t)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	flips := 0
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		for at := flips % step; at < len(whole); at += step {
			data := append([]byte{}, whole...)
			data[at] ^= 1 << (at % 8)
			require.NoError(t, os.WriteFile(path, data, 0o600))
			flips++
			s, err := doctor.Verify(t.Context(), dir, survey.Options{})
			require.NoError(t, err, "%s, byte %d", e.Name(), at)
			if e.Name() == "MANIFEST-000016" && at >= len(whole)-endMark {
				require.NotEmpty(t, s.Notes, "a crash may have cut it off")
				continue
			}
			require.NotEmpty(t, s.Damage, "%s, byte %d of %d", e.Name(), at, len(whole))
			require.Equal(t, e.Name(), s.Damage[0].File, "%s, byte %d", e.Name(), at)
		}
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	require.Greater(t, flips, 2600/step)
}

func TestVerifyListsAllDamage(t *testing.T) {
	dir := copyStore(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "000011.sst")))
	require.NoError(t, os.Truncate(filepath.Join(dir, "000015.sst"), 100))
	require.NoError(t, os.Remove(filepath.Join(dir, "000018.wal")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	s, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	var files []string
	for _, d := range s.Damage {
		files = append(files, d.File)
	}
	require.ElementsMatch(t, []string{"000011.sst", "000015.sst", "000018.wal"}, files)
	require.True(t, s.Manifest.Trusted, "it was closed: what is missing is missing")
	require.Equal(t, []string{"000018.wal"}, s.MissingLogs)
}

func TestGarbageIsWhatAWholeManifestDoesNotList(t *testing.T) {
	dir := copyStore(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "000003.wal"), []byte("old"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "000005.sst"), []byte("old"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "CURRENT.tmp"), []byte("old"), 0o600))
	s, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	require.Empty(t, s.Damage)
	require.Equal(t, []survey.File{{"000003.wal", 3}, {"000005.sst", 3}, {"CURRENT.tmp", 3}}, s.Garbage)
}

func TestForeignDirectoriesAreRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := survey.Take(t.Context(), dir, survey.Options{})
	require.ErrorIs(t, err, kv.ErrNotExist)
	for _, name := range []string{"CURRENT", "MANIFEST-000004", "000008.sst"} { // as RocksDB calls them
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("MANIFEST-000004\n"), 0o600))
	}
	_, err = survey.Take(t.Context(), dir, survey.Options{})
	require.ErrorIs(t, err, kv.ErrForeignDirectory)
	_, err = doctor.Verify(t.Context(), dir, survey.Options{})
	require.ErrorIs(t, err, kv.ErrForeignDirectory)
	require.NoFileExists(t, filepath.Join(dir, manifest.LockName), "nothing is left behind")
	_, err = shapeOf(t.Context(), filepath.Join(dir, "nowhere"))
	require.ErrorIs(t, err, kv.ErrNotExist)
	require.NoDirExists(t, filepath.Join(dir, "nowhere"))
}

// shapeOf returns the shape of the store in dir, as siftkv stats takes it.
func shapeOf(ctx context.Context, dir string) (st *shape.Stats, err error) {
	h, err := survey.HoldBeside(vfs.OS, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	s, err := h.Take(ctx, survey.Options{})
	if err != nil {
		return nil, err
	}
	return shape.Of(s), nil
}

// A manifest that was cut after an edit looks like one that a crash cut. The files
// tell.
func TestAManifestThatLostEditsIsNotTrusted(t *testing.T) {
	dir := copyStore(t)
	require.NoError(t, os.Truncate(filepath.Join(dir, "MANIFEST-000016"), 210))
	s, err := survey.Take(t.Context(), dir, survey.Options{Deep: true})
	require.NoError(t, err)
	require.False(t, s.Manifest.Trusted)
	require.NotEmpty(t, s.Damage)
	require.Equal(t, "MANIFEST-000016", s.Manifest.Name)
}

func TestARestoredStoreIsWhole(t *testing.T) {
	dir, restored := copyStore(t), filepath.Join(t.TempDir(), "restored")
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	var stream bytes.Buffer
	_, err = db.Backup(t.Context(), &stream, kv.BackupMark{})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NoError(t, kv.Restore(t.Context(), &stream, restored, nil))
	s, err := doctor.Verify(t.Context(), restored, survey.Options{})
	require.NoError(t, err)
	require.Empty(t, s.Damage, "it needs no log")
}

// A registration is no part of a store, and no damage to it.
func TestARegistrationIsNoDamage(t *testing.T) {
	dir := copyStore(t)
	without, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "READER-99999-1"), []byte("dead"), 0o600))
	view, err := kv.OpenReadOnly(dir, nil)
	require.NoError(t, err)
	with, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	require.Equal(t, without.Damage, with.Damage)
	require.Equal(t, without.Notes, with.Notes)
	require.Equal(t, without.Garbage, with.Garbage)
	require.NoError(t, view.Close())
}

// A filterOfOnesOwn is a filter of an application: another under a name of its own.
type filterOfOnesOwn struct{ filterpolicy.Policy }

func (filterOfOnesOwn) Name() string { return "own" }

func (f filterOfOnesOwn) Decode(data []byte) (filterpolicy.Filter, error) {
	return filterpolicy.Decode(f.Policy.Name(), data)
}

// A filter that only the application can decode is no damage.
func TestAFilterOfAnUnknownFamilyIsNoDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	policy, err := filterpolicy.Parse("bloom:10")
	require.NoError(t, err)
	db, err := kv.Open(dir, &kv.Options{Filter: filterOfOnesOwn{policy}})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), []byte("v"), nil))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	for _, deep := range []bool{false, true} {
		s, err := survey.Take(t.Context(), dir, survey.Options{Deep: deep})
		require.NoError(t, err)
		require.Len(t, s.Tables, 1)
		require.Equal(t, "own", s.Tables[0].Info.FilterFamily)
		require.Empty(t, s.Damage)
	}
	s, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	require.Empty(t, s.Damage)
}

// rows is an extractor of an application's own.
type rows struct{}

func (rows) Name() string { return "rows" }

func (rows) Prefix(key []byte) ([]byte, bool) { return key[:min(4, len(key))], len(key) >= 4 }

// Every byte of a filter is checked, also of one that only the application can ask.
func TestDamageInAFilterOfPrefixesIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{Prefix: rows{}, PrefixOnly: true})
	require.NoError(t, err)
	for i := range 100 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%04d/x", i), []byte("v"), nil))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	whole, err := survey.Take(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	require.Empty(t, whole.Damage)
	require.Len(t, whole.Tables, 1)
	table := whole.Tables[0]
	require.True(t, table.Info.PrefixOnly)
	path := filepath.Join(dir, table.Name)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	// The tail has no range tombstones: the filter is the first in it.
	filter := data[table.Size-table.Info.TailSize:][:table.Info.FilterBytes]
	for at := 0; at < len(filter); at += 7 {
		filter[at] ^= 0x20
		require.NoError(t, os.WriteFile(path, data, 0o600))
		filter[at] ^= 0x20
		for _, deep := range []bool{false, true} {
			s, err := survey.Take(t.Context(), dir, survey.Options{Deep: deep})
			require.NoError(t, err)
			require.NotEmpty(t, s.Damage, "byte %d of %d", at, len(filter))
		}
	}
}

// A power cut after a close may take the mark at the manifest's end, which is not synced, and
// bring back a table that was removed, with writes of a history that was lost. The note of
// the close, which is synced, says that the manifest has all its edits.
func TestAClosedStoreThatLostPowerIsWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), []byte("v"), nil))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	s, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	manifestFile := filepath.Join(dir, s.Manifest.Name)
	const endMark = 15 // bytes: see docs/format.md
	info, err := os.Stat(manifestFile)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(manifestFile, info.Size()-endMark))

	out, err := os.Create(filepath.Join(dir, "000090.sst"))
	require.NoError(t, err)
	w := sstable.NewWriter(out, nil)
	require.NoError(t, w.Add(base.MakeKey([]byte("lost"), 1000, base.KindSet), nil))
	_, err = w.Finish()
	require.NoError(t, err)
	require.NoError(t, out.Close())
	s, err = doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	require.False(t, s.Manifest.Closed, "the mark is gone")
	require.Empty(t, s.Damage)
	require.True(t, s.Manifest.Trusted)
}
