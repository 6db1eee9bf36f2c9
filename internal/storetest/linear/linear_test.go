package linear

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// Histories of stores whose disk lets others go on at each call.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	histories, ops, conflicts, flushes := scale.Count(scale.Fewer(80, 25), 300), 0, uint64(0), uint64(0)
	for seed := range histories {
		rng := rand.New(rand.NewPCG(uint64(seed), 6))
		o := stores.RandomOptions(rng)
		o.InMemory, harness.Of(o).FS = true, vfstest.YieldingFS{FS: vfs.NewMem()}
		db, err := kv.Open("db", o)
		require.NoError(t, err)
		clients := Clients{Ops: 25, Pad: strings.Repeat("-", []int{0, 0, 3000}[rng.IntN(3)]),
			Random: func(c int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), uint64(c))) }}
		clients.Number = 2 + rng.IntN(4)
		ops += clients.Check(t, db, fmt.Sprint("seed ", seed))
		m := db.Metrics()
		conflicts, flushes = conflicts+m.TxConflicts, flushes+m.Flushes
		require.NoError(t, db.Close())
	}
	require.NotZero(t, conflicts)
	t.Logf("%d histories of %d operations; %d transactions were refused; %d flushes", histories, ops, conflicts,
		flushes)
}

// The specification tells right from wrong.
func TestLinearModel(t *testing.T) {
	op := func(call, done int64, refused bool, steps ...Step) porcupine.Operation {
		return porcupine.Operation{Input: &Op{Steps: steps, Refused: refused}, Call: call, Return: done}
	}
	set := Step{Write: true, Key: 1, Value: 7}
	require.True(t, porcupine.CheckOperations(Model, []porcupine.Operation{
		op(1, 4, false, Step{Key: 1}, set), op(2, 3, false, Step{Key: 1, Value: 7}),
	}), "the write took effect at once")
	require.False(t, porcupine.CheckOperations(Model, []porcupine.Operation{
		op(1, 2, false, set), op(3, 4, false, Step{Key: 1}),
	}), "a stale read")
	require.False(t, porcupine.CheckOperations(Model, []porcupine.Operation{
		op(1, 2, true, set), op(3, 4, false, Step{Key: 1, Value: 7}),
	}), "a refused write is seen")
	// Write skew: both read both keys absent, and each writes one.
	a := op(1, 3, false, Step{Key: 1}, Step{Key: 2}, set)
	b := op(2, 4, false, Step{Key: 1}, Step{Key: 2}, Step{Write: true, Key: 2, Value: 8})
	require.False(t, porcupine.CheckOperations(Model, []porcupine.Operation{a, b}))
}
