package kv

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Long values that are ingested stay in their tables until those are rewritten, over values of the same keys
// that are separated.
func TestIngestedValuesAreSeparatedWhenTheyAreRewritten(t *testing.T) {
	dir := t.TempDir()
	db := openDir(t, dir, &Options{SeparateFrom: 1000})
	m := storetest.Model{}
	var writes []string
	for i := range 40 {
		k, v := fmt.Sprintf("key%02d", i), fmt.Sprintf("%05000d", i)
		if i%2 == 0 {
			m[k] = v
			set(t, db, k, v)
		}
		if i%3 == 0 {
			m[k] = v + "ingested"
			writes = append(writes, k+"="+m[k])
		}
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	before := requireBlobMetrics(t, db)
	require.EqualValues(t, 20, before.LiveRecords)
	path := ingestFile(t, vfs.OS, filepath.Join(t.TempDir(), "file"), nil, writes...)
	require.NoError(t, db.Ingest(t.Context(), []string{path}, nil))
	requireContents(t, m, db)
	after := requireBlobMetrics(t, db)
	require.Equal(t, before.Written, after.Written)
	require.EqualValues(t, 20, after.Records)

	require.NoError(t, db.Compact(t.Context(), nil, nil))
	requireContents(t, m, db)
	after = requireBlobMetrics(t, db)
	require.EqualValues(t, len(m), after.LiveRecords, "all values are separated")
	require.Greater(t, after.Written, before.Written)
	require.NoError(t, db.Close())
	require.NoError(t, Verify(t.Context(), dir, io.Discard))
}

// A store's own table with handles is refused, by that store too, whether or not it is read.
func TestTablesWithHandlesAreNotIngested(t *testing.T) {
	dir := t.TempDir()
	db := openDir(t, dir, &Options{SeparateFrom: 10})
	set(t, db, "key", "a separated value")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	db.cleaner.Wait()
	table := filepath.Join(t.TempDir(), "table")
	data, err := os.ReadFile(only(t, dir, manifest.FileTable))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(table, data, 0o600))
	for _, skip := range []bool{false, true} {
		err := db.Ingest(context.Background(), []string{table}, &IngestOptions{SkipVerify: skip})
		require.ErrorIs(t, err, ErrNotIngestible)
	}
	requireContents(t, storetest.Model{"key": "a separated value"}, db)
	requireBlobMetrics(t, db)
	require.NoError(t, db.Close())
}
