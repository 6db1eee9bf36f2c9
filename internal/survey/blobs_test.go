package survey_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/survey/shape"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// separatedStore makes a store with separated values in several blob files, and returns its directory
// and their names.
func separatedStore(t *testing.T) (dir string, blobs []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 10, Compression: sstable.NoCompression,
		L0CompactionThreshold: 100})
	require.NoError(t, err)
	for round := range 3 {
		for i := range 20 {
			key, value := fmt.Appendf(nil, "key%02d", i*(round+1)), bytes.Repeat([]byte{byte(i)}, 5+i)
			if i%3 == 0 {
				require.NoError(t, db.SetTTL(key, value, time.Hour, kv.NoSync))
			} else {
				require.NoError(t, db.Set(key, value, kv.NoSync))
			}
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	require.NoError(t, db.Close())
	blobs, err = filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	require.Len(t, blobs, 3)
	return dir, blobs
}

func verify(t *testing.T, dir string) *survey.Store {
	t.Helper()
	s, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	return s
}

func TestVerifyReadsBlobFiles(t *testing.T) {
	dir, blobs := separatedStore(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "900000.blob"), []byte("left by a crash"), 0o600))
	s := verify(t, dir)
	require.Empty(t, s.Damage)
	require.Len(t, s.Blobs, 4)
	require.Len(t, s.Garbage, 1)
	var out strings.Builder
	require.NoError(t, s.Verdict().WriteText(&out))
	for _, name := range blobs {
		require.Contains(t, out.String(), filepath.Base(name))
	}
	require.Contains(t, out.String(), "15 entries")
	require.NotContains(t, out.String(), "900000")
}

func TestVerifyFindsFlippedBitsOfBlobFiles(t *testing.T) {
	dir, blobs := separatedStore(t)
	whole, err := os.ReadFile(blobs[1])
	require.NoError(t, err)
	for at := 0; at < len(whole); at += 5 {
		data := bytes.Clone(whole)
		data[at] ^= 1 << (at % 8)
		require.NoError(t, os.WriteFile(blobs[1], data, 0o600))
		s, err := doctor.Verify(t.Context(), dir, survey.Options{})
		require.NoError(t, err, "byte %d", at)
		require.NotEmpty(t, s.Damage, "byte %d", at)
		require.Equal(t, filepath.Base(blobs[1]), s.Damage[0].File)
	}
}

func TestVerifyFindsBlobFilesThatAreMissingCutOrSwapped(t *testing.T) {
	dir, blobs := separatedStore(t)
	whole, err := os.ReadFile(blobs[1])
	require.NoError(t, err)
	require.NoError(t, os.Remove(blobs[1]))
	require.Contains(t, fmt.Sprint(verify(t, dir).Damage), "a blob file is missing")
	require.NoError(t, os.WriteFile(blobs[1], whole[:len(whole)-1], 0o600))
	require.Equal(t, filepath.Base(blobs[1]), verify(t, dir).Damage[0].File)
	other, err := os.ReadFile(blobs[2])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(blobs[1], other, 0o600))
	require.Contains(t, fmt.Sprint(verify(t, dir).Damage), "this is another file")
	require.NoError(t, os.WriteFile(blobs[1], whole, 0o600))
	require.Empty(t, verify(t, dir).Damage)
}

// The sums of a survey are those that the store counts.
func TestShapeSumsBlobFilesUp(t *testing.T) {
	dir, _ := separatedStore(t)
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 10, Compression: sstable.NoCompression,
		L0CompactionThreshold: 100})
	require.NoError(t, err)
	for i := range 30 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%02d", i), bytes.Repeat([]byte("new"), 20), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	db, err = kv.Open(dir, &kv.Options{ReadOnly: true})
	require.NoError(t, err)
	m := db.Metrics()
	require.Positive(t, m.Blobs.Garbage+m.Blobs.HiddenBytes)
	require.NoError(t, db.Close())
	st, err := shapeOf(t.Context(), dir)
	require.NoError(t, err)
	b := m.Blobs
	want := &shape.BlobSums{Files: b.Files, Bytes: b.Bytes, Records: b.Records, LiveRecords: b.LiveRecords,
		LiveBytes: b.LiveBytes, Garbage: b.Garbage, HiddenBytes: b.HiddenBytes, ValueBytes: st.Blobs.ValueBytes}
	require.Equal(t, want, st.Blobs)
	require.Greater(t, st.Blobs.ValueBytes, uint64(30*60))
	require.Less(t, st.Blobs.ValueBytes, uint64(b.Bytes))
	for _, l := range st.Levels {
		require.Equal(t, m.Levels[l.Level].BlobBytes, l.BlobBytes)
	}
	var text strings.Builder
	require.NoError(t, st.WriteText(&text))
	require.Contains(t, text.String(), fmt.Sprintf("blob files: %d of %d bytes, %d values of ", b.Files, b.Bytes,
		b.Records))
	require.Contains(t, text.String(), fmt.Sprintf("; garbage: %d bytes; space %.2f\n", b.Garbage,
		b.SpaceAmplification()))
}
