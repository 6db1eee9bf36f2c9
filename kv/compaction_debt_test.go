package kv

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
)

// holdCompactions keeps compactions from starting, or lets them start.
func (d *DB) holdCompactions(held bool) {
	d.reschedule(func() { d.compactions.Paused = held })
}

// threadsFor returns the threads with which compactions of levels run one after the other.
func threadsFor(kind CompactionStyle) int {
	if kind == Leveled {
		return 1
	}
	return 2 // one of them is for level 0
}

// due reports whether a compaction would start.
func (d *DB) due() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return compaction.Pick(d.compactionInput(d.current)) != nil
}

// Debt is what compactions then do: it is there when, and only when, one is due, they take in
// about as much, and nothing is left of it when they are through.
func TestDebtIsWhatCompactionsDo(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes; TestDebtFallsFromCompactionToCompaction has its goroutines")
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		o := tieredOptions(kind)
		var taken atomic.Int64
		o.Events.Compacted = func(i CompactionInfo) { taken.Add(i.InputBytes) }
		o.MaxConcurrentCompactions = threadsFor(kind)
		db := openDir(t, "db", o)
		require.Zero(t, db.Metrics().CompactionDebt, "of an empty store")
		rng := rand.New(rand.NewPCG(1, 1))
		debts, owed := int64(0), map[bool]int{}
		for range 80 {
			db.holdCompactions(true)
			fill(t, db, storetest.Model{}, rng, 1+rng.IntN(6), 1_000_000)
			debt := db.Metrics().CompactionDebt
			require.Equal(t, db.due(), debt > 0, "debt of %d bytes", debt)
			debts += debt
			owed[debt > 0]++
			db.holdCompactions(false)
			db.settle()
			require.Zero(t, db.Metrics().CompactionDebt, "of a store that has settled")
		}
		require.Greater(t, owed[true], 10)
		require.Greater(t, owed[false], 10)
		require.InEpsilon(t, taken.Load(), debts, 0.3)
		require.NoError(t, db.Close())
	})
}

// Every compaction that ends takes something off the debt that has grown.
func TestDebtFallsFromCompactionToCompaction(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		o := tieredOptions(kind)
		var debts []int64
		var db *DB
		o.Events.Compacted = func(CompactionInfo) {
			if debts != nil {
				debts = append(debts, db.Metrics().CompactionDebt)
			}
		}
		o.MaxConcurrentCompactions, o.L0SlowdownThreshold, o.L0StopThreshold = threadsFor(kind), 300, 600
		db = openDir(t, "db", o)
		rng := rand.New(rand.NewPCG(1, 1))
		for range 25 { // the same store in each run
			db.holdCompactions(true)
			fill(t, db, storetest.Model{}, rng, 10, 1_000_000)
			db.holdCompactions(false)
			db.settle()
		}
		db.holdCompactions(true)
		fill(t, db, storetest.Model{}, rng, 60, 1_000_000)
		debts = []int64{db.Metrics().CompactionDebt}
		db.holdCompactions(false)
		db.settle()
		if kind == Leveled {
			require.Greater(t, len(debts), 5, "of one compaction and more")
		}
		for i, debt := range debts[1:] {
			require.Less(t, debt, debts[i], "%v", debts)
		}
		require.Zero(t, debts[len(debts)-1])
		require.NoError(t, db.Close())
	})
}

// A store that is opened with another style owes what it takes to get that shape, and a reader
// says so too.
func TestDebtOfAnotherStyle(t *testing.T) {
	o := tieredOptions(Tiered)
	db := openDir(t, "db", o)
	fill(t, db, storetest.Model{}, rand.New(rand.NewPCG(1, 1)), 2*3, 1_000_000)
	db.settle()
	m := db.Metrics()
	require.Equal(t, 2, m.Levels[1].Runs)
	require.Zero(t, m.CompactionDebt)
	require.NoError(t, db.Close())

	o.Compaction, o.ReadOnly = Leveled, true
	db = openDir(t, "db", o)
	// The level becomes one run, and goes down then.
	require.Greater(t, db.Metrics().CompactionDebt, m.Levels[1].Bytes*3/2)
	require.NoError(t, db.Close())
	require.True(t, db.Metrics().Closed)
	require.Zero(t, db.Metrics().CompactionDebt)

	o.ReadOnly = false
	db = openDir(t, "db", o)
	db.settle()
	require.False(t, db.Metrics().Closed)
	require.Zero(t, db.Metrics().CompactionDebt)
	require.NoError(t, db.Close())
}
