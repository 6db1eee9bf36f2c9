package kv

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

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
	fillBranch(t, db, model{}, 0, 3000, "own")
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	lost := func(view *DB) {
		t.Helper()
		var err error
		for i := 0; err == nil && i < 3000; i++ {
			_, err = view.Get(fmt.Appendf(nil, "%05d", i))
		}
		require.ErrorIs(t, err, ErrStale)
	}
	view, err := OpenReadOnly("", &Options{MemtableSize: 64 << 10, Objects: b})
	require.NoError(t, err)
	saved, err := OpenReadOnly("", &Options{MemtableSize: 64 << 10, Objects: checkpointOf(b, "c")})
	require.NoError(t, err)
	require.NoError(t, main.DropBranch(ctx, "b"))
	lost(saved)
	lost(view)
	require.ErrorIs(t, view.Refresh(ctx), ErrNotExist)
	require.ErrorIs(t, saved.Refresh(ctx), ErrNotExist)
	require.NoError(t, main.Clone(ctx, "b"))
	require.ErrorIs(t, view.Refresh(ctx), ErrNotExist)
	require.NoError(t, errors.Join(view.Close(), saved.Close()))
	requireView(t, b, model{})
}

// A branch or a checkpoint is dropped at each request of who opens it to read: it is opened, or is not there.
func TestWhatIsDroppedWhileAReaderOpensIt(t *testing.T) {
	ctx, s := context.Background(), objstore.NewMem()
	main := branchOf(s, "")
	require.NoError(t, openBranch(t, main).Close())
	require.NoError(t, main.Clone(ctx, "b"))
	db := openBranch(t, branchOf(s, "b"))
	fillBranch(t, db, model{}, 0, 300, "own")
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("synced"), nil, Sync))
	cut := copyObjects(t, s) // with a log
	require.NoError(t, db.Close())
	for _, checkpoint := range []string{"", "c"} {
		for n, came := int64(1), true; came; n++ {
			store := copyObjects(t, cut)
			faults, dropped := atRequest(store, n, func() {
				require.NoError(t, branchOf(store, "").DropBranch(ctx, "b"))
			})
			view, err := OpenReadOnly("", &Options{MemtableSize: 64 << 10,
				Objects: checkpointOf(branchOf(faults, "b"), checkpoint)})
			came = dropped.Load()
			if err != nil && !errors.Is(err, ErrStale) {
				require.ErrorIs(t, err, ErrNotExist, "checkpoint %q, request %d", checkpoint, n)
			}
			if err == nil {
				require.NoError(t, view.Close())
			}
		}
	}
}
