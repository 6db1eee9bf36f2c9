package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// linearKeys is how many keys a history is about: few, so that all depends on all.
const linearKeys = 5

// A linearState is the store: a value for each key, 0 where there is none.
type linearState [linearKeys]int32

// A linearOp is an operation of the store, a batch or a transaction alike: steps
// that take effect at one moment between its call and its return.
type linearOp struct {
	name  string
	steps []linearStep
	// A transaction that was refused has no effect. What it read was the store at one moment all the same.
	refused bool
}

// A linearStep is a read that found a value, or a write.
type linearStep struct {
	write bool
	key   int
	value int32 // 0: absent, or a deletion
}

// linearModel is the sequential specification: a map.
var linearModel = porcupine.Model{
	Init: func() any { return linearState{} },
	Step: func(state, input, _ any) (bool, any) {
		before, _ := state.(linearState)
		op, _ := input.(*linearOp)
		now := before
		for _, s := range op.steps {
			if s.write {
				now[s.key] = s.value
			} else if now[s.key] != s.value {
				return false, before
			}
		}
		if op.refused {
			return true, before
		}
		return true, now
	},
	DescribeOperation: func(input, _ any) string {
		op, _ := input.(*linearOp)
		return op.String()
	},
}

func (o *linearOp) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(", o.name)
	for _, s := range o.steps {
		fmt.Fprintf(&b, " %d%s%d", s.key, map[bool]string{false: "=", true: ":="}[s.write], s.value)
	}
	if o.refused {
		b.WriteString(" refused")
	}
	return b.String() + " )"
}

// A linearRun records the history of concurrent clients.
type linearRun struct {
	t     *testing.T
	db    *DB
	clock atomic.Int64  // orders calls and returns
	value atomic.Int32  // each value is written once
	pad   string        // makes values long enough to fill memtables
	ended chan struct{} // asks for a flush and a compaction, after an operation

	mu      sync.Mutex
	history []porcupine.Operation
}

func linearKey(n int) []byte { return []byte{'k', byte('0' + n)} }

// client does random operations.
func (r *linearRun) client(id int, rng *rand.Rand, ops int) {
	for range ops {
		op := &linearOp{}
		call := r.clock.Add(1)
		switch n := rng.IntN(12); {
		case n < 3:
			op.name = "Get"
			r.get(r.db, op, rng.IntN(linearKeys))
		case n < 4:
			op.name = "NewIter"
			r.scan(r.db, op, rng)
		case n < 5:
			op.name = "Set"
			k, v := rng.IntN(linearKeys), r.next()
			op.write(k, v)
			require.NoError(r.t, r.db.Set(linearKey(k), r.encode(v), durabilityOf(rng)))
		case n < 6:
			op.name = "Delete"
			k := rng.IntN(linearKeys)
			op.write(k, 0)
			require.NoError(r.t, r.db.Delete(linearKey(k), durabilityOf(rng)))
		case n < 8:
			op.name = "Batch"
			b := r.db.NewBatch()
			r.writes(b, op, rng, 1+rng.IntN(4))
			require.NoError(r.t, b.Commit(durabilityOf(rng)))
		default:
			op.name = "Tx"
			r.transaction(op, rng)
		}
		done := r.clock.Add(1)
		r.mu.Lock()
		r.history = append(r.history, porcupine.Operation{ClientId: id, Input: op, Call: call, Return: done})
		r.mu.Unlock()
		select {
		case r.ended <- struct{}{}:
		default: // it is asked for already
		}
	}
}

func (r *linearRun) compact() {
	require.NoError(r.t, errors.Join(r.db.Flush(context.Background()), r.db.Compact(context.Background(), nil, nil)))
}

func durabilityOf(rng *rand.Rand) *WriteOptions {
	return []*WriteOptions{Sync, NoSync, Async}[rng.IntN(3)]
}

func (r *linearRun) next() int32 { return r.value.Add(1) }

func (r *linearRun) encode(v int32) []byte { return []byte(strconv.Itoa(int(v)) + r.pad) }

func (r *linearRun) decode(b []byte) int32 {
	n, err := strconv.Atoi(strings.TrimRight(string(b), "-"))
	require.NoError(r.t, err)
	return int32(n)
}

func (o *linearOp) write(key int, value int32) {
	o.steps = append(o.steps, linearStep{write: true, key: key, value: value})
}

func (r *linearRun) get(from Reader, op *linearOp, k int) {
	s := linearStep{key: k}
	if v, err := from.Get(linearKey(k)); err == nil {
		s.value = r.decode(v)
	} else {
		require.ErrorIs(r.t, err, ErrNotFound)
	}
	op.steps = append(op.steps, s)
}

// scan reads a range of keys, in either direction.
func (r *linearRun) scan(from Reader, op *linearOp, rng *rand.Rand) {
	lo, hi := rng.IntN(linearKeys), rng.IntN(linearKeys+1)
	it, err := from.NewIter(&IterOptions{LowerBound: linearKey(lo), UpperBound: linearKey(hi)})
	require.NoError(r.t, err)
	var found linearState
	first, next := it.First, it.Next
	if rng.IntN(2) == 0 {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		found[it.Key()[1]-'0'] = r.decode(it.Value())
	}
	require.NoError(r.t, it.Close())
	for k := lo; k < hi; k++ {
		op.steps = append(op.steps, linearStep{key: k, value: found[k]})
	}
}

// A linearWriter is a batch or a transaction.
type linearWriter interface {
	Set(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(lo, hi []byte) error
}

func (r *linearRun) writes(to linearWriter, op *linearOp, rng *rand.Rand, n int) {
	for range n {
		k := rng.IntN(linearKeys)
		switch rng.IntN(6) {
		case 0:
			op.write(k, 0)
			require.NoError(r.t, to.Delete(linearKey(k)))
		case 1:
			hi := rng.IntN(linearKeys + 1)
			for i := k; i < hi; i++ {
				op.write(i, 0)
			}
			require.NoError(r.t, to.DeleteRange(linearKey(k), linearKey(hi)))
		default:
			v := r.next()
			op.write(k, v)
			require.NoError(r.t, to.Set(linearKey(k), r.encode(v)))
		}
	}
}

func (r *linearRun) transaction(op *linearOp, rng *rand.Rand) {
	tx := beginTx(r.t, r.db, rng.IntN(5) > 0)
	for range 1 + rng.IntN(3) {
		switch n := rng.IntN(6); {
		case n < 3:
			r.get(tx, op, rng.IntN(linearKeys))
		case n < 4:
			r.scan(tx, op, rng)
		case tx.writable:
			r.writes(tx, op, rng, 1)
		}
		if rng.IntN(6) == 0 {
			r.compact() // what the transaction sees must outlast it
		}
		runtime.Gosched()
	}
	if rng.IntN(10) == 0 {
		op.refused = true
		require.NoError(r.t, tx.Discard())
		return
	}
	if err := tx.Commit(durabilityOf(rng)); err != nil {
		require.ErrorIs(r.t, err, ErrConflict)
		op.refused = true
	}
}

// TestLinearizable checks concurrent histories of lookups, scans, writes, batches and transactions, with flushes and
// compactions going on, by porcupine: there must be an order of the operations that respects their calls and returns
// and that a map would have answered the same.
//
// Whoever is at work lets others in where a disk would, and the goroutine that compacts
// waits until an operation has ended: so operations interleave on one processor too.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	histories, ops, conflicts, flushes := scale.Count(80, 300), 0, uint64(0), uint64(0)
	for seed := range histories {
		rng := rand.New(rand.NewPCG(uint64(seed), 6))
		o := randomOptions(rng)
		o.InMemory, o.harness.FS = true, vfstest.YieldingFS{FS: vfs.NewMem()}
		db, err := Open("db", o)
		require.NoError(t, err)
		r := &linearRun{t: t, db: db, ended: make(chan struct{}, 1),
			pad: strings.Repeat("-", []int{0, 0, 3000}[rng.IntN(3)])}
		var clients, background sync.WaitGroup
		for c := range 2 + rng.IntN(4) {
			clients.Go(func() { r.client(c, rand.New(rand.NewPCG(uint64(seed), uint64(c))), 25) })
		}
		background.Go(func() {
			for range r.ended {
				r.compact()
			}
		})
		clients.Wait()
		close(r.ended)
		background.Wait()
		if !porcupine.CheckOperations(linearModel, r.history) {
			for _, o := range r.history {
				t.Logf("client %d [%d, %d] %s", o.ClientId, o.Call, o.Return, o.Input)
			}
			t.Fatalf("the history of seed %d is not linearizable", seed)
		}
		m := db.Metrics()
		ops, conflicts, flushes = ops+len(r.history), conflicts+m.TxConflicts, flushes+m.Flushes
		require.NoError(t, db.Close())
	}
	require.NotZero(t, conflicts)
	t.Logf("%d histories of %d operations; %d transactions were refused; %d flushes", histories, ops, conflicts,
		flushes)
}

// TestLinearModel sees to it that the specification tells right from wrong.
func TestLinearModel(t *testing.T) {
	op := func(call, done int64, refused bool, steps ...linearStep) porcupine.Operation {
		return porcupine.Operation{Input: &linearOp{steps: steps, refused: refused}, Call: call, Return: done}
	}
	set := linearStep{write: true, key: 1, value: 7}
	require.True(t, porcupine.CheckOperations(linearModel, []porcupine.Operation{
		op(1, 4, false, linearStep{key: 1}, set), op(2, 3, false, linearStep{key: 1, value: 7}),
	}), "the write took effect at once")
	require.False(t, porcupine.CheckOperations(linearModel, []porcupine.Operation{
		op(1, 2, false, set), op(3, 4, false, linearStep{key: 1}),
	}), "a stale read")
	require.False(t, porcupine.CheckOperations(linearModel, []porcupine.Operation{
		op(1, 2, true, set), op(3, 4, false, linearStep{key: 1, value: 7}),
	}), "a refused write is seen")
	// Write skew: both read both keys absent, and each writes one.
	a := op(1, 3, false, linearStep{key: 1}, linearStep{key: 2}, set)
	b := op(2, 4, false, linearStep{key: 1}, linearStep{key: 2}, linearStep{write: true, key: 2, value: 8})
	require.False(t, porcupine.CheckOperations(linearModel, []porcupine.Operation{a, b}))
}
