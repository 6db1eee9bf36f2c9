package branches

import (
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// afterCollection opens a branch, does something, and returns when its collector has looked at the checkpoints and gone
// on since.
func afterCollection(t *testing.T, s objstore.Store, branch string, do func(db *kv.DB)) {
	t.Helper()
	var looked, trimmed atomic.Bool
	faults := objstoretest.NewFaults(s, 1)
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind == objstore.List && c.Key == "checkpoint/" {
			looked.Store(true)
		}
		if c.Kind == objstore.List && strings.HasSuffix(c.Key, "entry/") && looked.Load() {
			trimmed.Store(true)
		}
		return f
	})
	// so large that nothing is compacted by itself
	db, err := kv.Open("", &kv.Options{Objects: branchOf(faults, branch)})
	require.NoError(t, err)
	do(db)
	flushUntil(t, db, trimmed.Load)
	require.NoError(t, db.Close())
}

// flushUntil flushes more and more until something is done, which the collector does after a list of files.
func flushUntil(t *testing.T, db *kv.DB, done func() bool) {
	t.Helper()
	storetest.Until(func() bool {
		require.NoError(t, db.Set([]byte("more"), nil, kv.NoSync))
		require.NoError(t, db.Flush(t.Context()))
		return done()
	})
}

// A branch gives up its pin when neither it nor its checkpoints nor its clones need files of others, and no sooner.
func TestABranchKeepsItsPinAsLongAsItIsNeeded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, main, db, want := filledStore(t, 1000)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, main.Clone(ctx, "child"))
	child := branchOf(s, "child")
	own := maps.Clone(want)
	own["more"] = ""
	pin := checkpointsIn(t, s)
	require.Len(t, pin, 1)
	overwrite := func() {
		fillBranch(t, db, want, 0, 1000, "new")
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	compact := func(db *kv.DB) {
		require.NoError(t, db.Set([]byte("z"), nil, kv.NoSync))
		for k, v := range own {
			require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync)) // compactions leave values apart where they are
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	afterCollection(t, s, "child", func(*kv.DB) {})
	require.Subset(t, checkpointsIn(t, s), pin, "the branch needs it")
	overwrite()
	requireView(t, child, own)

	_, err := child.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	was := maps.Clone(own)
	own["z"] = ""
	afterCollection(t, s, "child", compact)
	require.Subset(t, checkpointsIn(t, s), pin, "its checkpoint needs it")
	overwrite()
	requireView(t, child, own)
	requireView(t, checkpointOf(child, "c"), was)

	require.NoError(t, checkpointOf(child, "c").Clone(ctx, "grandchild"))
	require.NoError(t, child.DropCheckpoint(ctx, "c"))
	afterCollection(t, s, "child", compact)
	require.Subset(t, checkpointsIn(t, s), pin, "its clone needs it")
	overwrite()
	requireView(t, branchOf(s, "grandchild"), was)

	require.NoError(t, main.DropBranch(ctx, "grandchild"))
	last, err := kv.Open("", &kv.Options{Objects: child})
	require.NoError(t, err)
	compact(last)
	flushUntil(t, last, func() bool { return len(checkpointsIn(t, s)) == 0 }) // it is not needed
	require.NoError(t, last.Close())
	requireView(t, child, own)
	require.NoError(t, db.Close())
	requireView(t, main, want)
}

// While a checkpoint cannot be read, nobody knows which files it needs: none is deleted, and a warning says so.
func TestADamagedCheckpointKeepsAllFiles(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, main, db, want := filledStore(t, 1000)
	_, err := db.PinCheckpoint(ctx, "c")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	key := checkpointsIn(t, s)[0]
	whole, err := objstore.ReadAll(ctx, s, key, 1<<20)
	require.NoError(t, err)
	for what, spoil := range map[string]func(b []byte){
		"damaged":      func(b []byte) { b[len(b)/2] ^= 1 },
		"newer format": func(b []byte) { b[8] = 2 },
	} {
		b := []byte(string(whole))
		spoil(b)
		if what == "newer format" {
			resum(b)
		}
		require.NoError(t, s.Delete(ctx, key))
		require.NoError(t, s.PutIfAbsent(ctx, key, b))
		warnings := &logCatcher{}
		opts := &kv.Options{Objects: branchOf(s, ""), Logger: warnings.Logger()}
		db, err := kv.Open("", opts)
		require.NoError(t, err)
		before := storetest.TablesOf(t, s)
		fillBranch(t, db, want, 0, 1000, what)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		want["more"] = ""
		require.NoError(t, db.Set([]byte("more"), nil, kv.NoSync))
		flushUntil(t, db, func() bool { return warnings.Has("a checkpoint cannot be read") })
		require.Subset(t, storetest.TablesOf(t, s), before, what)
		require.NoError(t, db.Close())
		_, err = kv.OpenReadOnly("", &kv.Options{MemtableSize: 64 << 10, Objects: checkpointOf(main, "c")})
		if what == "damaged" {
			require.ErrorIs(t, err, kv.ErrCorruption)
		} else {
			require.ErrorIs(t, err, kv.ErrNewerFormat)
		}
		require.Error(t, checkpointOf(main, "c").Clone(ctx, "x"))
		requireBranch(t, main, want)
	}
	require.NoError(t, main.DropCheckpoint(ctx, "c"))
	requireBranch(t, main, want)
}
