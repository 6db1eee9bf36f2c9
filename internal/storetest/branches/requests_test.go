package branches

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/objstore"
)

// logEntries is how many entries a log may have that is not in sorted files yet: each is a GET more.
const logEntries = 10

// What docs/object-storage.md says of checkpoints and clones, which is the same however large the store is.
func TestRequestsOfCheckpointsAndClones(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, keys := range []int{100, 20_000} {
		s := storetest.NewCountedStore()
		main := branchOf(s, "")
		main.Grace = 0
		db := openBranch(t, main)
		want := storetest.Model{}
		fillBranch(t, db, want, 0, keys, "x")
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, db.Flush(t.Context()))
		requests := func(gets, lists, puts, deletes int64, f func() error) {
			t.Helper()
			needed := s.Requests(func() { require.NoError(t, f()) })
			require.LessOrEqual(t, needed[objstore.Get], gets+logEntries, "files are not read")
			for kind, n := range map[objstore.Kind]int64{objstore.Put: 0, objstore.List: lists,
				objstore.PutIfAbsent: puts, objstore.Delete: deletes} {
				require.Equal(t, n, needed[kind], kind)
			}
		}
		pin := func() error { _, err := db.PinCheckpoint(ctx, "c"); return err }
		requests(3, 4, 2, 0, pin)
		requests(1, 1, 0, 0, func() error { _, err := main.Checkpoints(ctx); return err })
		requests(4, 3, 3, 0, func() error { return main.Clone(ctx, "head") })
		requests(2, 3, 3, 0, func() error { return checkpointOf(main, "c").Clone(ctx, "from-c") })
		requests(8, 5, 3, 0, func() error { return branchOf(s, "head").Clone(ctx, "deep") })
		requests(3, 4, 0, 0, func() error { _, err := main.Branches(ctx); return err })
		requests(10, 12, 5, 2, func() error { return main.DropBranch(ctx, "from-c") })
		requests(0, 2, 0, 2, func() error { return db.DropCheckpoint(ctx, "c") })
		storetest.RequireContents(t, want, db)
		require.NoError(t, db.Close())
	}
}
