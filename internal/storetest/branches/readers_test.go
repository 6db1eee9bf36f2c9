package branches

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
)

// Who has a branch or a checkpoint open that is dropped finds that files are gone. A view of the branch that is
// refreshed says that it is no more, also when another has its name.
func TestReadersOfWhatIsDropped(t *testing.T) {
	ctx, s := context.Background(), objstore.NewMem()
	main := branchOf(s, "")
	require.NoError(t, openBranch(t, main).Close())
	require.NoError(t, main.Clone(ctx, "b"))
	b := branchOf(s, "b")
	db := openBranch(t, b)
	fillBranch(t, db, storetest.Model{}, 0, 3000, "own")
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	lost := func(view *kv.DB) {
		t.Helper()
		var err error
		for i := 0; err == nil && i < 3000; i++ {
			_, err = view.Get(fmt.Appendf(nil, "%05d", i))
		}
		require.ErrorIs(t, err, kv.ErrStale)
	}
	view, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: b})
	require.NoError(t, err)
	saved, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: checkpointOf(b, "c")})
	require.NoError(t, err)
	require.NoError(t, main.DropBranch(ctx, "b"))
	lost(saved)
	lost(view)
	require.ErrorIs(t, view.Refresh(ctx), kv.ErrNotExist)
	require.ErrorIs(t, saved.Refresh(ctx), kv.ErrNotExist)
	require.NoError(t, main.Clone(ctx, "b"))
	require.ErrorIs(t, view.Refresh(ctx), kv.ErrNotExist)
	require.NoError(t, errors.Join(view.Close(), saved.Close()))
	requireView(t, b, storetest.Model{})
}

// A branch or a checkpoint is dropped at each request of who opens it to read: it is opened, or is not there.
func TestWhatIsDroppedWhileAReaderOpensIt(t *testing.T) {
	ctx, s := context.Background(), objstore.NewMem()
	main := branchOf(s, "")
	require.NoError(t, openBranch(t, main).Close())
	require.NoError(t, main.Clone(ctx, "b"))
	db := openBranch(t, branchOf(s, "b"))
	fillBranch(t, db, storetest.Model{}, 0, 300, "own")
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("synced"), nil, kv.Sync))
	cut := storetest.CopyObjects(t, s) // with a log
	require.NoError(t, db.Close())
	for _, checkpoint := range []string{"", "c"} {
		for n, came := int64(1), true; came; n++ {
			store := storetest.CopyObjects(t, cut)
			faults, dropped := atRequest(store, n, func() {
				require.NoError(t, branchOf(store, "").DropBranch(ctx, "b"))
			})
			view, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10,
				Objects: checkpointOf(branchOf(faults, "b"), checkpoint)})
			came = dropped.Load()
			if err != nil && !errors.Is(err, kv.ErrStale) {
				require.ErrorIs(t, err, kv.ErrNotExist, "checkpoint %q, request %d", checkpoint, n)
			}
			if err == nil {
				require.NoError(t, view.Close())
			}
		}
	}
}
