package branches

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A view that misses a blob file says that it is stale, and has everything again when it has refreshed.
func TestAViewWhoseBlobFilesAreDeleted(t *testing.T) {
	s := objstore.NewMem()
	o := &kv.Options{SeparateFrom: 1, Objects: branchOf(s, "")}
	db, err := kv.Open("", o)
	require.NoError(t, err)
	want := storetest.Model{}
	fillBranch(t, db, want, 0, 100, "old")
	require.NoError(t, db.Flush(t.Context()))
	before := storetest.BlobsIn(t, s)
	require.NotEmpty(t, before)
	view, err := kv.OpenReadOnly("", &kv.Options{CacheSize: -1, Objects: &objects.Config{Store: s}})
	require.NoError(t, err)
	storetest.RequireContents(t, want, view)
	fillBranch(t, db, want, 0, 100, "new")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	flushUntil(t, db, func() bool { return !bucketHas(t, s, before) })
	want["more"] = ""
	_, err = view.Get([]byte("00007"))
	require.ErrorIs(t, err, kv.ErrStale)
	harness.Settle(db) // else a compaction may end, and its files go, while the view reads
	require.NoError(t, view.Refresh(t.Context()))
	storetest.RequireContents(t, want, view)
	require.NoError(t, view.Close())
	require.NoError(t, db.Close())
}

// bucketHas reports whether one of some objects is there.
func bucketHas(t *testing.T, s objstore.Store, keys []string) bool {
	t.Helper()
	for _, key := range keys {
		if _, err := s.GetRange(t.Context(), key, 0, make([]byte, 1)); err == nil {
			return true
		}
	}
	return false
}

// A checkpoint and a clone keep the blob files that they refer to, whatever their owner gives up.
func TestCheckpointsAndClonesKeepBlobFiles(t *testing.T) {
	ctx := t.Context()
	s := objstore.NewMem()
	main := branchOf(s, "")
	open := func(branch string) *kv.DB {
		db, err := kv.Open("", &kv.Options{SeparateFrom: 1, Objects: branchOf(s, branch)})
		require.NoError(t, err)
		return db
	}
	db, want := open(""), storetest.Model{}
	fillBranch(t, db, want, 0, 200, "old")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	old, shared := maps.Clone(want), storetest.BlobsIn(t, s)
	require.NotEmpty(t, shared)
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	all, err := main.Checkpoints(ctx)
	require.NoError(t, err)
	require.Greater(t, all[0].Bytes, int64(200*100/10), "it says how many bytes it keeps, with those of values")
	require.NoError(t, checkpointOf(main, "c").Clone(ctx, "child"))
	require.NoError(t, main.DropCheckpoint(ctx, "c"))
	_, err = db.PinCheckpoint(ctx, "d")
	require.NoError(t, err)

	// overwrite gives all files up that there were, and has the collector come by.
	overwrite := func() {
		for n := range 3 {
			fillBranch(t, db, want, 0, 200, fmt.Sprint("new ", n))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			harness.Settle(db)
		}
	}
	overwrite()
	require.Subset(t, storetest.BlobsIn(t, s), shared)
	requireView(t, checkpointOf(main, "d"), old)
	require.NoError(t, main.DropCheckpoint(ctx, "d"))
	overwrite()
	require.Subset(t, storetest.BlobsIn(t, s), shared, "the clone needs them")
	requireView(t, branchOf(s, "child"), old)
	require.ErrorIs(t, main.DropBranch(ctx, ""), objects.ErrInvalidName)

	// When the clone has tables of its own, its values are still the parent's.
	child := open("child")
	require.NoError(t, child.Set([]byte("z"), nil, kv.NoSync))
	require.NoError(t, child.Compact(t.Context(), nil, nil))
	require.NotZero(t, storetest.RequireBlobs(t, child))
	require.NoError(t, child.Close())
	overwrite()
	own := maps.Clone(old)
	own["z"] = ""
	requireView(t, branchOf(s, "child"), own)
	require.Subset(t, storetest.BlobsIn(t, s), shared, "values of the clone are in them")

	// When it has written all of them anew, nobody needs them any more.
	for len(checkpointsIn(t, s)) > 0 { // until the pin is not needed, which the collector sees when it next comes by
		afterCollection(t, s, "child", func(child *kv.DB) {
			fillBranch(t, child, own, 0, 200, "the clone's")
			require.NoError(t, child.Set([]byte("more"), nil, kv.NoSync))
			require.NoError(t, child.Compact(t.Context(), nil, nil))
		})
	}
	own["more"] = ""
	for bucketHas(t, s, shared) {
		overwrite()
	}
	requireView(t, branchOf(s, "child"), own)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
	require.NoError(t, main.DropBranch(ctx, "child"))
	for _, key := range storetest.BlobsIn(t, s) {
		require.NotContains(t, key, "data/", "they went with the branch")
	}
}
