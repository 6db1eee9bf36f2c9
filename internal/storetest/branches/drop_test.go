package branches

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// atRequest returns a client that does something before its n-th request, and whether it came to that.
func atRequest(s objstore.Store, n int64, do func()) (faults *objstoretest.Faults, came *atomic.Bool) {
	faults, came = objstoretest.NewFaults(s, 1), new(atomic.Bool)
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.N == n {
			came.Store(true)
			do()
		}
		return f
	})
	return faults, came
}

// The checkpoint that a clone is made from is dropped at each of its requests, perhaps another gets its name, and all
// that nobody needs is deleted: the clone is what the checkpoint was, or it is none.
func TestTheCheckpointOfACloneIsDroppedMeanwhile(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), objstore.NewMem()
	db := openBranch(t, branchOf(s, ""))
	want := storetest.Model{}
	fillBranch(t, db, want, 0, 500, "old")
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	for _, again := range []bool{false, true} {
		made, refused := 0, 0
		for n, came := int64(1), true; came; n++ {
			store, at := storetest.CopyObjects(t, s), fmt.Sprintf("again %v, request %d", again, n)
			faults, stalled := atRequest(store, n, func() {
				require.NoError(t, branchOf(store, "").DropCheckpoint(ctx, "c"))
				afterCollection(t, store, "", func(db *kv.DB) {
					fillBranch(t, db, storetest.Model{}, 0, 500, "new")
					require.NoError(t, db.Compact(t.Context(), nil, nil))
				})
				if again {
					_, err := branchOf(store, "").PinCheckpoint(ctx, "c")
					require.NoError(t, err)
				}
				afterCollection(t, store, "", func(*kv.DB) {}) // what the one before had no time to delete
			})
			err := checkpointOf(branchOf(faults, ""), "c").Clone(ctx, "new")
			came = stalled.Load()
			switch {
			case err == nil && again && n <= 1: // it is made from the second
				continue
			case err == nil:
				made++
				requireView(t, branchOf(store, "new"), want)
			default:
				refused++
				require.ErrorIs(t, err, kv.ErrNotExist, at)
				_, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: branchOf(store, "new")})
				require.ErrorIs(t, err, kv.ErrNotExist, at)
			}
		}
		require.Greater(t, made, 1)
		require.Greater(t, refused, 2)
	}
}

// Whoever opens a branch stalls before one of its requests while another drops it, who stalls before one of his until
// the branch was opened, or is through before. If the drop succeeds, nobody can write to the branch.
func TestABranchIsDroppedWhileItIsOpened(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), objstore.NewMem()
	db := openBranch(t, branchOf(s, ""))
	fillBranch(t, db, storetest.Model{}, 0, 500, "old")
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, branchOf(s, "").Clone(ctx, "b"))
	require.NoError(t, db.Close())
	for n, came := int64(1), true; came; n++ {
		for m, waited := int64(1), true; waited && came; m++ {
			store, at := storetest.CopyObjects(t, s), fmt.Sprintf("request %d, and %d of the drop", n, m)
			waits, opened, dropped := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			drop, stalls := atRequest(store, m, func() { close(waits); <-opened })
			open, opens := atRequest(store, n, func() {
				go func() { dropped <- branchOf(drop, "").DropBranch(ctx, "b") }()
				select {
				case <-waits:
				case err := <-dropped:
					dropped <- err
				}
			})
			db, err := kv.Open("", &kv.Options{Objects: branchOf(open, "b")})
			if err == nil {
				err = db.Set([]byte("k"), nil, kv.Sync)
			}
			close(opened)
			open.Inject(func(objstoretest.Call) (f objstoretest.Fault) { return f })
			if came = opens.Load(); !came {
				require.NoError(t, err)
				require.NoError(t, db.Close())
				break
			}
			require.NoError(t, <-dropped, at)
			waited = stalls.Load()
			requireNoWriter(t, store, db, err, at)
		}
	}
}

// requireNoWriter requires of a branch that was dropped that it was not opened, or that who has it open is told.
func requireNoWriter(t *testing.T, s objstore.Store, db *kv.DB, err error, at string) {
	t.Helper()
	told := func(err error) bool { return errors.Is(err, kv.ErrNotExist) || errors.Is(err, objects.ErrFenced) }
	if err != nil {
		require.True(t, told(err), "%s: %v", at, err)
	}
	if db != nil {
		require.ErrorIs(t, db.Set([]byte("late"), nil, kv.Sync), objects.ErrFenced, at)
		_ = db.Close()
	}
	for o, err := range s.List(context.Background(), "data/", "") {
		require.NoError(t, err)
		require.LessOrEqual(t, o.Size, int64(80), "%s: %s is left", at, o.Key)
	}
}
