package branches

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// Whoever makes a checkpoint or a clone stalls before one of its requests, and others take the store over meanwhile,
// replace all of it, and delete what nobody needs then. What is made is what the store was before, or after.
func TestWhoMakesACheckpointOrACloneStalls(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), objstore.NewMem()
	db := openBranch(t, branchOf(s, ""))
	old := storetest.Model{}
	fillBranch(t, db, old, 0, 500, "old")
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Set([]byte("more"), nil, kv.Sync))
	old["more"] = ""
	require.NoError(t, db.Close())
	for name, call := range map[string]func(o *objects.Config) (*objects.Config, error){
		"pin": func(o *objects.Config) (*objects.Config, error) {
			_, err := o.PinCheckpoint(ctx, "new")
			return &objects.Config{Checkpoint: "new"}, err
		},
		"clone": func(o *objects.Config) (*objects.Config, error) {
			return &objects.Config{Branch: "new"}, o.Clone(ctx, "new")
		},
	} {
		for n := int64(1); ; n++ {
			store, want := storetest.CopyObjects(t, s), maps.Clone(old)
			stalled := false
			faults := objstoretest.NewFaults(store, 1)
			faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
				if c.N != n {
					return f
				}
				stalled = true
				afterCollection(t, store, "", func(db *kv.DB) {
					fillBranch(t, db, want, 0, 500, "new")
					require.NoError(t, db.Compact(t.Context(), nil, nil))
				})
				afterCollection(t, store, "", func(*kv.DB) {}) // what the one before had no time to delete
				return f
			})
			made, err := call(branchOf(faults, ""))
			require.NoError(t, err, "%s, request %d", name, n)
			if !stalled {
				require.Greater(t, n, int64(5), name)
				break
			}
			afterCollection(t, store, "", func(*kv.DB) {})
			made.Store = store
			requireEither(t, made, old, want, fmt.Sprintf("%s, request %d", name, n))
		}
	}
}

// requireEither requires that a branch or a checkpoint has one of two states, whole.
func requireEither(t *testing.T, o *objects.Config, a, b storetest.Model, at string) {
	t.Helper()
	db, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: o})
	require.NoError(t, err, at)
	first, err := db.Get([]byte("00000"))
	require.NoError(t, err, at)
	want := a
	if string(first) == b["00000"] {
		want = b
	}
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}
