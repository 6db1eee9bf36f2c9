package powercuts

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv/objects"
)

// optionsIn returns the settings of a store in an object store, whose log is on the local disk as a rule.
func optionsIn(s *storetest.FrozenStore, rng *rand.Rand) *objects.Config {
	if s == nil {
		return nil
	}
	return &objects.Config{Store: s, LocalLog: rng.IntN(4) > 0, Grace: -1, Patience: time.Millisecond}
}

// TestPowerCutOfALocalLog is TestPowerCut for stores of which the log alone is on the disk whose power is cut, at most
// openings: the object store is as it was at that moment.
func TestPowerCutOfALocalLog(t *testing.T) {
	t.Parallel()
	want := int64(scale.Count(scale.Fewer(40, 15), 240))
	var cuts, calls, seeds atomic.Int64
	for cuts.Load() < want {
		seed := uint64(seeds.Add(1) - 1)
		r := &cutRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 5)), objects: storetest.NewFrozenStore()}
		calls.Add(int64(r.run(100, 10)))
		require.NotEmpty(t, r.cuts, "history %d", seed)
		cuts.Add(int64(len(r.cuts)))
	}
	require.Positive(t, cuts.Load())
	t.Logf("%d power cuts in %d calls of %d histories, each followed by one during recovery", cuts.Load(), calls.Load(),
		seeds.Load())
}
