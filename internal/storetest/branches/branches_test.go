package branches

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// branchOf returns the settings of a branch for tests.
func branchOf(s objstore.Store, branch string) *objects.Config {
	return &objects.Config{Store: s, Branch: branch, LogInterval: time.Hour, Patience: time.Millisecond, Grace: -1}
}

// openBranch opens a branch, or a checkpoint if o says so.
func openBranch(t testing.TB, o *objects.Config) *kv.DB {
	t.Helper()
	opts := &kv.Options{MemtableSize: 64 << 10, TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10, Objects: o}
	open := kv.Open
	if o.Checkpoint != "" {
		open = kv.OpenReadOnly
	}
	db, err := open("", opts)
	require.NoError(t, err)
	return db
}

// checkpointOf returns the settings of a checkpoint.
func checkpointOf(o *objects.Config, name string) *objects.Config {
	of := *o
	of.Checkpoint = name
	return &of
}

// filledStore returns an object store in memory with a store that has so many keys, its writer, and what it has.
func filledStore(t *testing.T, keys int) (s objstore.Store, main *objects.Config, db *kv.DB, want storetest.Model) {
	t.Helper()
	s, want = objstore.NewMem(), storetest.Model{}
	main = branchOf(s, "")
	db = openBranch(t, main)
	fillBranch(t, db, want, 0, keys, "old")
	return s, main, db, want
}

// fillBranch writes keys, and what they have then to want.
func fillBranch(t testing.TB, db *kv.DB, want storetest.Model, from, to int, value string) {
	t.Helper()
	for i := from; i < to; i++ {
		k, v := fmt.Sprintf("%05d", i), fmt.Sprintf("%s %0100d", value, i)
		storetest.Fine(t, db.Set([]byte(k), []byte(v), kv.NoSync))
		want[k] = v
	}
}

// requireBranch opens a branch or a checkpoint, and requires that it has what is wanted.
func requireBranch(t *testing.T, o *objects.Config, want storetest.Model) {
	t.Helper()
	db := openBranch(t, o)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}

// requireView is requireBranch for a view, beside which nobody compacts the branch.
func requireView(t *testing.T, o *objects.Config, want storetest.Model) {
	t.Helper()
	db, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: o})
	require.NoError(t, err)
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}

func TestACheckpointStaysAsItWas(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), objstore.NewMem()
	main := branchOf(s, "")
	db := openBranch(t, main)
	want := storetest.Model{}
	states := map[string]storetest.Model{}
	for _, name := range []string{"first", "2026-11-23", "a_b.c"} {
		fillBranch(t, db, want, 0, 2000, name)
		info, err := db.PinCheckpoint(ctx, name)
		require.NoError(t, err)
		require.Equal(t, name, info.Name)
		require.Positive(t, info.Bytes)
		states[name] = maps.Clone(want)
		_, err = db.PinCheckpoint(ctx, name)
		require.ErrorIs(t, err, objects.ErrExists)
	}
	fillBranch(t, db, want, 0, 3000, "later")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	found, err := main.Checkpoints(ctx)
	require.NoError(t, err)
	require.Len(t, found, 3)
	for _, c := range found {
		require.False(t, c.Unfinished)
		require.Contains(t, states, c.Name)
		requireBranch(t, checkpointOf(main, c.Name), states[c.Name])
	}
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
	for name, state := range states {
		requireBranch(t, checkpointOf(main, name), state)
	}
	requireBranch(t, main, want)
}

// What a checkpoint needed is deleted when it was dropped, and no sooner.
func TestFilesOfADroppedCheckpointAreDeleted(t *testing.T) {
	ctx := context.Background()
	s, main, db, want := filledStore(t, 2000)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	before := tablesNeeded(t, s, db)
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	old := maps.Clone(want)
	fillBranch(t, db, want, 0, 2000, "new")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Subset(t, storetest.TablesOf(t, s), before)
	require.NoError(t, db.Close())
	requireBranch(t, main, want) // its collector finds what its predecessor had to leave
	db = openBranch(t, main)
	fillBranch(t, db, want, 0, 1, "newest")
	require.NoError(t, db.Flush(t.Context()))
	requireBranch(t, checkpointOf(main, "c"), old)
	require.NoError(t, db.DropCheckpoint(ctx, "c"))
	require.ErrorIs(t, db.DropCheckpoint(ctx, "c"), kv.ErrNotExist)
	_, err = kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: checkpointOf(main, "c")})
	require.ErrorIs(t, err, kv.ErrNotExist)
	kept := func(key string) bool { return slices.Contains(before, key) }
	storetest.Until(func() bool { return !slices.ContainsFunc(storetest.TablesOf(t, s), kept) })
	storetest.RequireContents(t, want, db)
	require.NoError(t, db.Close())
}

// tablesNeeded returns the keys of the sorted files in a bucket, once they are those that a store needs and no others.
func tablesNeeded(t testing.TB, s objstore.Store, db *kv.DB) (keys []string) {
	t.Helper()
	storetest.Until(func() bool {
		tables := 0
		for _, l := range db.Metrics().Levels {
			tables += l.Files
		}
		keys = storetest.TablesOf(t, s)
		return len(keys) == tables
	})
	require.NotEmpty(t, keys)
	return keys
}

func TestACheckpointIsMadeBesideTheWriter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, main, db, want := filledStore(t, 2000)
	require.NoError(t, db.Set([]byte("synced"), nil, kv.Sync)) // it is in the log
	want["synced"] = ""
	view, err := kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: main})
	require.NoError(t, err)
	_, err = view.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	require.NoError(t, view.Close())
	requireBranch(t, checkpointOf(main, "c"), want)
	was := maps.Clone(want)
	fillBranch(t, db, want, 0, 10, "y")
	require.NoError(t, db.Close())
	requireBranch(t, main, want)
	requireBranch(t, checkpointOf(main, "c"), was)
}

func TestClonesGoTheirOwnWays(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, main, db, want := filledStore(t, 2000)
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	old := maps.Clone(want)
	fillBranch(t, db, want, 1000, 3000, "new")
	require.NoError(t, db.Set([]byte("synced"), nil, kv.Sync))
	want["synced"] = ""
	require.NoError(t, main.Clone(ctx, "head"))
	require.NoError(t, checkpointOf(main, "c").Clone(ctx, "from-c"))
	require.ErrorIs(t, main.Clone(ctx, "head"), objects.ErrExists)
	head, fromC := branchOf(s, "head"), branchOf(s, "from-c")
	models := map[*objects.Config]storetest.Model{main: want, head: maps.Clone(want), fromC: old}
	dbs := map[*objects.Config]*kv.DB{main: db, head: openBranch(t, head), fromC: openBranch(t, fromC)}
	for round := range 3 {
		for o, db := range dbs {
			storetest.RequireContents(t, models[o], db)
			fillBranch(t, db, models[o], round*500, round*500+1000, fmt.Sprint(o.Branch, round))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	}
	for o, db := range dbs {
		require.NoError(t, verifyBackup(t, db))
		require.NoError(t, db.Close())
		requireBranch(t, o, models[o])
	}
	all, err := main.Branches(ctx)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, []string{"from-c", "", "c"}, []string{all[0].Name, all[0].Parent, all[0].Checkpoint})
	require.Equal(t, []string{"head", "", ""}, []string{all[1].Name, all[1].Parent, all[1].Checkpoint})
	for _, b := range all {
		require.NoError(t, main.DropBranch(ctx, b.Name))
		require.ErrorIs(t, main.DropBranch(ctx, b.Name), kv.ErrNotExist)
		_, err := kv.Open("", &kv.Options{Objects: branchOf(s, b.Name)})
		require.ErrorIs(t, err, kv.ErrNotExist)
	}
	all, err = main.Branches(ctx)
	require.NoError(t, err)
	require.Empty(t, all)
	requireBranch(t, main, want)
	require.NoError(t, main.Clone(ctx, "head"), "the name is free")
	requireBranch(t, head, want)
}

// A clone keeps what it needs, whatever becomes of what it was made from.
func TestAClonesFilesStay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, main, db, want := filledStore(t, 2000)
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	was := maps.Clone(want)
	require.NoError(t, checkpointOf(main, "c").Clone(ctx, "child"))
	require.NoError(t, db.DropCheckpoint(ctx, "c"))
	_, err = kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: checkpointOf(main, "c")})
	require.ErrorIs(t, err, kv.ErrNotExist)
	child := branchOf(s, "child")
	require.NoError(t, child.Clone(ctx, "grandchild"))
	grandchild := branchOf(s, "grandchild")
	for range 3 {
		fillBranch(t, db, want, 0, 2000, "new")
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	requireView(t, child, was)
	require.ErrorIs(t, main.DropBranch(ctx, "child"), objects.ErrInUse)
	requireView(t, grandchild, was)
	require.Len(t, checkpointsIn(t, s), 3, "what was c, and two pins")
	// The grandchild replaces all that it shares, then the child does, whose pin is the last that c is for.
	for i, o := range []*objects.Config{grandchild, child} {
		db := openBranch(t, o)
		fillBranch(t, db, was, 0, 2000, "own")
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		fillBranch(t, db, was, 0, 1, "own")
		require.NoError(t, db.Flush(t.Context()))
		storetest.Until(func() bool { return len(checkpointsIn(t, s)) == []int{2, 0}[i] })
		require.NoError(t, db.Close())
		requireBranch(t, o, was)
	}
	require.NoError(t, db.Close())
	require.NoError(t, main.DropBranch(ctx, "child"))
	requireBranch(t, grandchild, was)
}

// checkpointsIn returns the keys of checkpoints and pins.
func checkpointsIn(t testing.TB, s objstore.Store) (keys []string) {
	t.Helper()
	for o, err := range s.List(context.Background(), "checkpoint/", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

func TestBranchesThatAreRefused(t *testing.T) {
	ctx, s := context.Background(), objstore.NewMem()
	main := branchOf(s, "")
	require.ErrorIs(t, main.Clone(ctx, "x"), kv.ErrNotExist, "there is no store")
	_, err := main.PinCheckpoint(ctx, "x")
	require.ErrorIs(t, err, kv.ErrNotExist)
	require.NoError(t, openBranch(t, main).Close())
	for _, name := range []string{"", "a/b", "a@b", ".", "-a", "ü"} {
		require.ErrorIs(t, main.Clone(ctx, name), objects.ErrInvalidName, name)
		require.ErrorIs(t, main.DropBranch(ctx, name), objects.ErrInvalidName, name)
		require.ErrorIs(t, main.DropCheckpoint(ctx, name), objects.ErrInvalidName, name)
		_, err := main.PinCheckpoint(ctx, name)
		require.ErrorIs(t, err, objects.ErrInvalidName, name)
	}
	for _, open := range []func(string, *kv.Options) (*kv.DB, error){kv.Open, kv.OpenReadOnly} {
		_, err := open("", &kv.Options{Objects: branchOf(s, "none")})
		require.ErrorIs(t, err, kv.ErrNotExist)
		_, err = open("", &kv.Options{Objects: branchOf(s, "a/b")})
		require.ErrorIs(t, err, objects.ErrInvalidName)
	}
	require.ErrorIs(t, branchOf(s, "none").Clone(ctx, "x"), kv.ErrNotExist)
	require.ErrorIs(t, checkpointOf(main, "none").Clone(ctx, "x"), kv.ErrNotExist)
	require.ErrorIs(t, main.DropBranch(ctx, "none"), kv.ErrNotExist)
	require.ErrorIs(t, main.DropCheckpoint(ctx, "none"), kv.ErrNotExist)
	_, err = kv.Open("", &kv.Options{Objects: checkpointOf(main, "c")})
	require.ErrorIs(t, err, kv.ErrInvalidOptions)
	require.ErrorContains(t, err, "Clone")
	_, err = kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: checkpointOf(main, "c")})
	require.ErrorIs(t, err, kv.ErrNotExist)
	db := stores.OpenDir(t, t.TempDir(), nil)
	_, err = db.PinCheckpoint(ctx, "c")
	require.ErrorIs(t, err, kv.ErrInvalidOptions)
	require.NoError(t, db.Close())
	_, err = db.PinCheckpoint(ctx, "c")
	require.ErrorIs(t, err, kv.ErrClosed)
}
