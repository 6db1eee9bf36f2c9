package objects

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// The next list of files of a view was deleted before the reader looked for it. The view has no later writes without
// those of a file that was ingested before them. It finds the newest list after 64 refreshes.
func TestAViewWithoutAHoleWhereListsAreDeleted(t *testing.T) {
	s := objstore.NewMem()
	db, err := kv.Open("", &kv.Options{Objects: &objects.Config{Store: s, LogInterval: time.Hour, Grace: -1}})
	require.NoError(t, err)
	file := storetest.IngestFile(t, vfs.OS, filepath.Join(t.TempDir(), "file"), nil, "ingested=1")
	require.NoError(t, db.Set([]byte("before"), []byte("1"), kv.Sync))
	reader := openObjectsReader(t, s) // which believes that lists are kept for ten minutes
	storetest.RequireContents(t, storetest.Model{"before": "1"}, reader)
	lists := func() (keys []string) {
		for o, err := range s.List(t.Context(), "entry/", "") {
			require.NoError(t, err)
			if o.Size > 80 {
				keys = append(keys, o.Key)
			}
		}
		return keys
	}
	require.NoError(t, db.Flush(t.Context()))
	harness.Settle(db) // the list of the ingest needs no entry before it
	require.NoError(t, db.Ingest(t.Context(), []string{file}, nil))
	storetest.Until(func() bool { return len(lists()) <= 1 }) // the collector comes
	require.NoError(t, db.Set([]byte("later"), []byte("1"), kv.Sync))
	for range 64 {
		require.NoError(t, reader.Refresh(t.Context()))
		if ok, err := reader.Has([]byte("later")); ok || err != nil {
			require.NoError(t, err)
			break
		}
		storetest.RequireContents(t, storetest.Model{"before": "1"}, reader)
	}
	storetest.RequireContents(t, storetest.Model{"before": "1", "ingested": "1", "later": "1"}, reader)
	require.NoError(t, reader.Close())
	require.NoError(t, db.Close())
}
