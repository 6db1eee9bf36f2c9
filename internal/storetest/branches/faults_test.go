package branches

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// branchCalls are what can be broken off, each in a store that has a checkpoint "c" and a branch "b" made from it.
var branchCalls = map[string]struct {
	call func(ctx context.Context, o *objects.Config) error
	done func(t *testing.T, o *objects.Config, want storetest.Model) bool // whether it was performed, whole
	was  error                                                            // of a second call, if it was
}{
	"pin": {
		func(ctx context.Context, o *objects.Config) error { _, err := o.PinCheckpoint(ctx, "new"); return err },
		func(t *testing.T, o *objects.Config, want storetest.Model) bool {
			return opens(t, &objects.Config{Store: o.Store, Checkpoint: "new"}, want)
		}, objects.ErrExists,
	},
	"clone": {
		func(ctx context.Context, o *objects.Config) error { return o.Clone(ctx, "new") },
		func(t *testing.T, o *objects.Config, want storetest.Model) bool {
			return opens(t, &objects.Config{Store: o.Store, Branch: "new"}, want)
		}, objects.ErrExists,
	},
	"clone of a checkpoint of a branch": {
		func(ctx context.Context, o *objects.Config) error {
			return (&objects.Config{Store: o.Store, Patience: o.Patience, Branch: "b", Checkpoint: "bc"}).Clone(ctx,
				"new")
		},
		func(t *testing.T, o *objects.Config, want storetest.Model) bool {
			return opens(t, &objects.Config{Store: o.Store, Branch: "new"}, want)
		}, objects.ErrExists,
	},
	"drop a checkpoint": {
		func(ctx context.Context, o *objects.Config) error { return o.DropCheckpoint(ctx, "c") },
		func(t *testing.T, o *objects.Config, want storetest.Model) bool {
			return !opens(t, &objects.Config{Store: o.Store, Checkpoint: "c"}, want)
		}, nil,
	},
	"drop a branch": {
		func(ctx context.Context, o *objects.Config) error { return o.DropBranch(ctx, "b") },
		func(t *testing.T, o *objects.Config, want storetest.Model) bool {
			return !opens(t, &objects.Config{Store: o.Store, Branch: "b"}, want)
		}, nil,
	},
}

// opens reports whether a branch or a checkpoint can be opened. It has what is wanted then.
func opens(t *testing.T, o *objects.Config, want storetest.Model) bool {
	t.Helper()
	db, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: o})
	if errors.Is(err, kv.ErrNotExist) {
		return false
	}
	require.NoError(t, err)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
	return true
}

// Whatever request a call is broken off at: what it makes is there whole or not at all, what it drops too, and it can
// be called again.
func TestBranchCallsThatBreakOff(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), objstore.NewMem()
	db := openBranch(t, branchOf(s, ""))
	want := storetest.Model{}
	fillBranch(t, db, want, 0, 2000/storetest.RaceFactor, "old")
	require.NoError(t, db.Set([]byte("synced"), nil, kv.Sync))
	want["synced"] = ""
	require.NoError(t, (&objects.Config{Store: s}).Clone(ctx, "b"))
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	_, err = branchOf(s, "b").PinCheckpoint(ctx, "bc")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	outcomes := map[string]objstoretest.Fault{
		"before": {Outcome: objstoretest.NotPerformed, Cut: true},
		"after":  {Cut: true},
		"late":   {Outcome: objstoretest.Late, Cut: true},
	}
	for name, c := range branchCalls {
		for outcome, fault := range outcomes {
			for n := int64(1); ; n += int64(scale.Stride(7, 1)) {
				store := storetest.CopyObjects(t, s)
				faults := objstoretest.NewFaults(store, 1)
				faults.Inject(func(call objstoretest.Call) (f objstoretest.Fault) {
					if call.N == n {
						f = fault
					}
					return f
				})
				at := fmt.Sprintf("%s, %s request %d", name, outcome, n)
				if c.call(ctx, branchOf(faults, "")) == nil {
					require.Greater(t, n, int64(2), at)
					break
				}
				whole := branchOf(store, "")
				done := c.done(t, whole, want)
				if err := c.call(ctx, whole); err != nil {
					require.True(t, done, "%s: %v", at, err)
					if !errors.Is(err, kv.ErrNotExist) || c.was != nil {
						require.ErrorIs(t, err, c.was, at)
					}
				}
				require.True(t, c.done(t, whole, want), at)
				faults.Deliver()
				require.True(t, c.done(t, whole, want), at)
				requireLife(t, store, want, at)
			}
		}
	}
}

// requireLife goes on with a store, deletes all that nobody needs, and requires that branches and checkpoints are
// what they were.
func requireLife(t *testing.T, s objstore.Store, was storetest.Model, at string) {
	t.Helper()
	ctx, main := context.Background(), branchOf(s, "")
	db, want := openBranch(t, main), maps.Clone(was)
	storetest.RequireContents(t, want, db)
	fillBranch(t, db, want, 0, 2000/storetest.RaceFactor, "new")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	fillBranch(t, db, want, 0, 1, "newer")
	require.NoError(t, db.Flush(t.Context()))
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
	all, err := main.Branches(ctx)
	require.NoError(t, err, at)
	for _, b := range all {
		require.Equal(t, !b.Unfinished, opens(t, branchOf(s, b.Name), was), at)
	}
	found, err := main.Checkpoints(ctx)
	require.NoError(t, err, at)
	for _, c := range found {
		if !c.Unfinished {
			require.True(t, opens(t, checkpointOf(main, c.Name), was), at)
		}
	}
	for _, c := range found {
		// Two may have one name, of which one is unfinished.
		if err := main.DropCheckpoint(ctx, c.Name); !errors.Is(err, kv.ErrNotExist) {
			require.NoError(t, err, at)
		}
	}
	// What was made from "b" goes before it.
	for i := range all {
		require.NoError(t, main.DropBranch(ctx, all[len(all)-1-i].Name), at)
	}
	for o, err := range s.List(ctx, "", "") {
		require.NoError(t, err)
		gone := strings.HasPrefix(o.Key, "data/") && o.Size > 80 || strings.HasPrefix(o.Key, "checkpoint/")
		require.False(t, gone, "%s: %s is left", at, o.Key)
	}
}
