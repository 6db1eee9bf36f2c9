package kv

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/stretchr/testify/require"
)

// A view whose next list of files was deleted before the reader looked for it has no later writes without those of a
// file that was ingested before them: it finds the newest list after 64 refreshes.
func TestAViewWithoutAHoleWhereListsAreDeleted(t *testing.T) {
	s := objstore.NewMem()
	db, err := Open("", &Options{Objects: &Objects{Store: s, LogInterval: time.Hour, Grace: -1}})
	require.NoError(t, err)
	file := ingestFile(t, vfs.OS, filepath.Join(t.TempDir(), "file"), nil, "ingested=1")
	require.NoError(t, db.Set([]byte("before"), []byte("1"), Sync))
	reader := openObjectsReader(t, s) // which believes that lists are kept for ten minutes
	requireContents(t, model{"before": "1"}, reader)
	lists := func() (keys []string) {
		for o, err := range s.List(t.Context(), "entry/", "") {
			require.NoError(t, err)
			if o.Size > 80 {
				keys = append(keys, o.Key)
			}
		}
		return keys
	}
	require.NoError(t, db.Ingest([]string{file}))
	for len(lists()) > 1 {
		time.Sleep(time.Millisecond) // the collector comes
	}
	require.NoError(t, db.Set([]byte("later"), []byte("1"), Sync))
	for range 64 {
		require.NoError(t, reader.Refresh(t.Context()))
		if ok, err := reader.Has([]byte("later")); ok || err != nil {
			require.NoError(t, err)
			break
		}
		requireContents(t, model{"before": "1"}, reader)
	}
	requireContents(t, model{"before": "1", "ingested": "1", "later": "1"}, reader)
	require.NoError(t, reader.Close())
	require.NoError(t, db.Close())
}

// silent is a store that stops to answer reads.
type silent struct {
	objstore.Store
	asked chan struct{} // nil: it answers
}

func (s *silent) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if s.asked == nil {
		return s.Store.GetRange(ctx, key, off, p)
	}
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

// Close of a view does not wait for an object store that does not answer.
func TestAViewIsClosedWhileARefreshGetsNoAnswer(t *testing.T) {
	s := &silent{Store: objstore.NewMem()}
	db := openObjects(t, s, nil)
	require.NoError(t, db.Set([]byte("key"), nil, Sync))
	require.NoError(t, db.Close())
	reader := openObjectsReader(t, s)
	s.asked = make(chan struct{}, 1)
	refreshed := make(chan error, 1)
	go func() { refreshed <- reader.Refresh(context.Background()) }()
	<-s.asked
	require.NoError(t, reader.Close())
	require.ErrorIs(t, <-refreshed, ErrClosed)
}
