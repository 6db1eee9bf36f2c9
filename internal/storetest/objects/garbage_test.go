package objects

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// bytesIn returns the bytes of all objects.
func bytesIn(t *testing.T, s objstore.Store) (n int64) {
	t.Helper()
	for o, err := range s.List(context.Background(), "", "") {
		require.NoError(t, err)
		n += o.Size
	}
	return n
}

// Jobs that open a store, overwrite it and close it within a minute leave it as large as the grace has had jobs. What
// is left in the end is deleted without a writer, and by one.
func TestAStoreOfShortJobsDoesNotGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := objstore.NewMem()
		const keys, jobs, each = 100, 40, 5 * time.Minute
		want := storetest.Model{}
		var sizes []int64
		for job := range jobs {
			db := openObjects(t, s, nil)
			for i := range keys {
				k, v := fmt.Sprintf("%03d", i), fmt.Sprintf("%01000d", job*keys+i)
				require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
				want[k] = v
			}
			require.NoError(t, db.Flush(t.Context()))
			require.NoError(t, db.Close())
			sizes = append(sizes, bytesIn(t, s))
			time.Sleep(each)
		}
		t.Logf("%d bytes after a job, %d after %d, %d after %d", sizes[0], sizes[jobs/4], jobs/4, sizes[jobs-1], jobs)
		require.LessOrEqual(t, sizes[jobs-1], 2*sizes[jobs/4])
		require.LessOrEqual(t, sizes[jobs-1], 8*sizes[0])

		time.Sleep(time.Hour)
		o := &objects.Config{Store: s}
		got, err := o.Collect(t.Context())
		require.NoError(t, err)
		require.Positive(t, got.Files+got.Entries)
		require.LessOrEqual(t, bytesIn(t, s), 4*sizes[0])
		db := openObjects(t, s, nil)
		storetest.RequireContents(t, want, db)
		require.NoError(t, db.Set([]byte("more"), nil, kv.Sync))
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		synctest.Wait() // files are given up a moment later
		require.Positive(t, db.Metrics().Objects.GarbageBytes)
		require.Positive(t, db.Metrics().Objects.GarbageFiles)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Zero(t, db.Metrics().Objects.GarbageFiles)
		require.Zero(t, db.Metrics().Objects.FailedDeletes)
		require.NoError(t, db.Close())
	})
}

// Collect of what is no store, or no branch.
func TestCollectWithoutAStore(t *testing.T) {
	t.Parallel()
	_, err := (&objects.Config{}).Collect(t.Context())
	require.ErrorIs(t, err, kv.ErrInvalidOptions)
	_, err = (&objects.Config{Store: objstore.NewMem(), Branch: "none"}).Collect(t.Context())
	require.ErrorIs(t, err, kv.ErrNotExist)
	got, err := (&objects.Config{Store: objstore.NewMem()}).Collect(t.Context())
	require.NoError(t, err)
	require.Zero(t, got)
}
