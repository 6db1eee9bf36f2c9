package branches

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// Names that differ in case, are as long as they may be, begin like others, or look like parts of keys are those of
// different branches and checkpoints, also in a directory; and lists are in the order of names.
func TestNamesOfBranchesAndCheckpoints(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, err := objstore.OpenDir(t.TempDir())
	require.NoError(t, err)
	names := []string{"a", "A", "a.b", "a-b", "a1", "aB", "a_b", "main", "1", "a-0123456789abcdef", "c-ok", "c",
		strings.Repeat("x", 48)}
	for what, s := range map[string]objstore.Store{"memory": objstore.NewMem(), "directory": dir} {
		main := branchOf(s, "")
		db := openBranch(t, main)
		want := storetest.Model{}
		for _, name := range names {
			fillBranch(t, db, want, 0, 1, name)
			_, err := db.PinCheckpoint(ctx, name)
			require.NoError(t, err)
			require.NoError(t, checkpointOf(main, name).Clone(ctx, name))
		}
		require.NoError(t, db.Close())
		branches, err := main.Branches(ctx)
		require.NoError(t, err)
		checkpoints, err := main.Checkpoints(ctx)
		require.NoError(t, err)
		var found, pinned []string
		for i := range branches {
			found, pinned = append(found, branches[i].Name), append(pinned, checkpoints[i].Name)
		}
		require.Equal(t, slices.Sorted(slices.Values(names)), found, what)
		require.Equal(t, found, pinned, what)
		for _, name := range names {
			for _, o := range []*objects.Config{checkpointOf(main, name), branchOf(s, name)} {
				view, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: o})
				require.NoError(t, err)
				value, err := view.Get([]byte("00000"))
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(string(value), name+" "), "%s: %s", name, value)
				require.NoError(t, view.Close())
			}
			require.NoError(t, main.DropCheckpoint(ctx, name))
			require.NoError(t, main.DropBranch(ctx, name))
		}
		require.Empty(t, checkpointsIn(t, s), what)
	}
}
