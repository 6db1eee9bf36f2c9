package branches

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

func TestMain(m *testing.M) {
	storetest.Main(m, map[string]func(dir string) error{"branch": writeToBranch})
}

// branchRounds is how often the writer of a branch, in a process of its own, replaces all that there is.
const branchRounds = 5

// writeToBranch is the child of TestABranchAndItsParentAreWrittenByTwoProcesses.
func writeToBranch(dir string) error {
	s, err := objstore.OpenDir(dir)
	if err != nil {
		return err
	}
	db, err := kv.Open("", &kv.Options{MemtableSize: 64 << 10, Objects: &objects.Config{Store: s, Branch: "child",
		Grace: -1}})
	if err != nil {
		return err
	}
	for round := range branchRounds {
		for i := range 500 {
			if err := db.Set(fmt.Appendf(nil, "%05d", i), fmt.Appendf(nil, "child %d", round), kv.NoSync); err != nil {
				return err
			}
		}
		if err := db.Compact(context.Background(), nil, nil); err != nil {
			return err
		}
		if _, err := db.PinCheckpoint(context.Background(), fmt.Sprintf("c%d", round)); err != nil {
			return err
		}
	}
	return db.Close()
}

func TestABranchAndItsParentAreWrittenByTwoProcesses(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "objects")
	s, err := objstore.OpenDir(dir)
	require.NoError(t, err)
	main := branchOf(s, "")
	db := openBranch(t, main)
	want := storetest.Model{}
	fillBranch(t, db, want, 0, 1000, "old")
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, main.Clone(ctx, "child"))
	own := maps.Clone(want)
	cmd := storetest.Child(t, "branch", dir, 0)
	require.NoError(t, cmd.Start())
	for round := range branchRounds {
		fillBranch(t, db, want, 0, 1000, fmt.Sprint("parent", round))
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		storetest.RequireContents(t, want, db)
	}
	require.NoError(t, cmd.Wait())
	require.NoError(t, db.Close())
	requireView(t, main, want)
	for round := range branchRounds {
		for i := range 500 {
			own[fmt.Sprintf("%05d", i)] = fmt.Sprintf("child %d", round)
		}
		requireView(t, checkpointOf(branchOf(s, "child"), fmt.Sprintf("c%d", round)), own)
	}
	requireView(t, branchOf(s, "child"), own)
}
