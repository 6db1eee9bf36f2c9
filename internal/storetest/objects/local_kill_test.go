package objects

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
)

// TestKillWithALocalLog has processes write to one store, each with its log in the same directory, and kills them at
// some moment. The one that looks at what is left takes the log to the object store and back at times. LONG sets how
// often: see internal/scale.
func TestKillWithALocalLog(t *testing.T) {
	t.Parallel() // it mostly waits
	root := t.TempDir()
	dir, log := filepath.Join(root, "objects"), filepath.Join(root, "log")
	s, err := objstore.OpenDir(dir)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(15, 500))
	open := func(local bool, least, most int) *objectsWriter {
		o := objectsOptions(rng, s)
		configOf(o).LocalLog = local
		db, err := kv.Open(log, o)
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		w := &objectsWriter{t: t, rng: rng, db: db, n: requireWrites(t, db, least, most)}
		w.synced = w.n
		return w
	}
	rounds, writes := scale.Fewer(max(scale.Count(4, 12), 4), 2), 0
	for round := range rounds {
		c := startObjectsChildOf(t, "local log", dir, round)
		for limit := writes + rng.IntN(200); limit > writes && c.synced < limit && c.read(); {
		}
		require.NoError(t, c.cmd.Process.Kill())
		for c.read() {
		}
		require.Error(t, c.cmd.Wait())
		require.False(t, c.cmd.ProcessState.Exited(), "round %d: the child failed: %s", round, c.stderr.String())
		if round%4 == 3 {
			writes = max(writes, c.synced)
			continue // the next child recovers
		}
		w := open(rng.IntN(2) == 0, max(writes, c.synced), 1<<30)
		w.write(rng.IntN(20))
		if rng.IntN(2) == 0 {
			require.NoError(t, w.db.Close())
		} else {
			stores.Crash(t, w.db)
		}
		writes = w.n
	}
	w := open(true, writes, 1<<30)
	w.write(5)
	requireOnlyLiveObjects(t, s, w)
	require.NoError(t, w.db.Close())
	w = takeOver(t, s, 99, w.n, w.n)
	require.NoError(t, w.db.Close())
	t.Logf("%d rounds, %d writes", rounds, w.n)
}
