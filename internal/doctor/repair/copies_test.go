package repair

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// crashedSeparated returns what a store with separated values has on disk while it is open: a table with writes 1 to 50
// and its blob file, and no end of the manifest.
func crashedSeparated(t *testing.T) (dir string, now map[string]string) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "open")
	db, err := kv.Open(from, &kv.Options{SeparateFrom: 10})
	require.NoError(t, err)
	now = map[string]string{}
	for i := range 50 {
		k, v := fmt.Sprintf("key%03d", i), strings.Repeat(fmt.Sprint(i, " "), 20)
		require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
		now[k] = v
	}
	require.NoError(t, db.Flush(t.Context()))
	dir = filepath.Join(t.TempDir(), "store")
	copyOpen(t, from, dir)
	require.NoError(t, db.Close())
	return dir, now
}

// collect does to a store what a compaction does that moves all values of its blob file: it writes another, and a table
// with sequence numbers zero. No manifest lists them.
func collect(t *testing.T, dir string) {
	t.Helper()
	s, err := survey.Take(t.Context(), dir, survey.Options{Deep: true})
	require.NoError(t, err)
	require.Len(t, s.Tables, 1)
	listing := s.Blobs[0].Listing
	f, err := os.Open(filepath.Join(dir, listing.Name()))
	require.NoError(t, err)
	src, err := blob.NewReader(f, listing.Size, blob.ReaderOptions{ID: listing.ID})
	require.NoError(t, err)
	to, err := os.Create(filepath.Join(dir, manifest.FileName(manifest.FileBlob, 91)))
	require.NoError(t, err)
	w := blob.NewWriter(to, blob.WriterOptions{Num: 91, ID: 0xb10b})
	table, err := os.Create(filepath.Join(dir, manifest.FileName(manifest.FileTable, 90)))
	require.NoError(t, err)
	tw := sstable.NewWriter(table, nil)
	tw.KnowBlobs(func(uint64) uint64 { return w.ID() })
	p := &piece{fs: vfs.OS, path: filepath.Join(dir, s.Tables[0].Name), t: s.Tables[0].Describe()}
	require.NoError(t, eachHandle(p, func(k base.InternalKey, h blob.Handle) error {
		st, err := src.OpenStream(k.User, h)
		require.NoError(t, err)
		to, err := w.Copy(st)
		require.NoError(t, err)
		return tw.Add(base.MakeKey(k.User, 0, base.KindSetSeparated), to.Append(nil))
	}))
	_, err = w.Finish()
	require.NoError(t, err)
	_, err = tw.Finish()
	require.NoError(t, err)
	require.NoError(t, to.Close())
	require.NoError(t, table.Close())
	require.NoError(t, src.Close())
}

// A manifest that has lost the edit of a collection is known to have, as soon as what was collected is gone, and the
// copies of its records count. Tables of before may be there still.
func TestAManifestThatHasLostACollection(t *testing.T) {
	for _, gone := range []string{"blob", "table", "both", "manifest and blob", "none"} {
		dir, now := crashedSeparated(t)
		collect(t, dir)
		if strings.Contains(gone, "blob") || gone == "both" {
			require.NoError(t, os.Remove(filesOf(t, dir, manifest.FileBlob)[0]))
		}
		if gone == "table" || gone == "both" {
			require.NoError(t, os.Remove(filesOf(t, dir, manifest.FileTable)[0]))
		}
		if gone == "manifest and blob" {
			require.NoError(t, os.Remove(filesOf(t, dir, manifest.FileManifest)[0]))
		}
		dry, err := Run(t.Context(), dir, Options{DryRun: true})
		require.NoError(t, err)
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err, gone)
		require.Equal(t, sums(r), sums(dry), gone)
		require.Equal(t, gone != "none", r.Needed)
		require.Equal(t, now, contents(t, dir), "%s: %+v", gone, r)
		if r.Needed {
			require.Equal(t, "sequence numbers", r.Levels, gone)
		}
		for _, l := range r.Lost {
			require.Empty(t, l.Values, gone)
		}
	}
}

// A blob file that is missing while all tables that refer to it are there, and no others, is lost: the manifest is not.
func TestABlobFileLostBesideAManifestThatWasNotClosed(t *testing.T) {
	dir, now := crashedSeparated(t)
	require.NoError(t, os.Remove(filesOf(t, dir, manifest.FileBlob)[0]))
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Equal(t, "manifest", r.Levels)
	require.True(t, r.LostForSure())
	require.Len(t, r.Lost[len(r.Lost)-1].Values, len(now))
	require.Empty(t, contents(t, dir))
}

// A manifest that was cut off before a flush, of which the table is gone too: the blob file tells, and has all values.
func TestAManifestCutOffBeforeABlobFile(t *testing.T) {
	t.Parallel()
	origin := filepath.Join(t.TempDir(), "origin")
	db, err := kv.Open(origin, &kv.Options{SeparateFrom: 1})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("value"), nil))
	require.NoError(t, db.Set([]byte("b"), []byte("value"), nil))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	whole, err := os.ReadFile(filesOf(t, origin, manifest.FileManifest)[0])
	require.NoError(t, err)
	told := 0
	for cut := 0; cut < len(whole); cut += scale.Stride(11, 3) {
		dir := filepath.Join(t.TempDir(), "store")
		cloneDir(t, origin, dir)
		require.NoError(t, os.Remove(filesOf(t, dir, manifest.FileTable)[0]))
		require.NoError(t, os.WriteFile(filesOf(t, dir, manifest.FileManifest)[0], whole[:cut], 0o600))
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		if strings.Contains(fmt.Sprint(r.Damage), "does not list 000005.blob") {
			told++
		}
		require.True(t, r.Needed)
		require.Equal(t, map[string]string{"a": "value", "b": "value"}, contents(t, dir), "cut at %d: %+v", cut, r)
	}
	t.Log(len(whole), told)
	require.Positive(t, told)
}
