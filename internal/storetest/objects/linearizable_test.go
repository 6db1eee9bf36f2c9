package objects

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/linear"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A takenRun is the history of clients of a store that another writer takes over in their middle. Some of them stay
// with the writer before for a while.
type takenRun struct {
	t     *testing.T
	first *kv.DB
	db    atomic.Pointer[kv.DB] // that has the store now
	clock atomic.Int64
	value atomic.Int32
	taken int64 // when the next writer had opened the store

	mu  sync.Mutex
	ops []*takenOp
}

// A takenOp is an operation of a client.
type takenOp struct {
	linear.Op
	db         *kv.DB
	client     int
	call, done int64
	unknown    bool // it failed, and what it writes may be there
	fenced     bool // it failed, as the store was taken over
}

func (o *takenOp) writes() (n int) {
	for _, s := range o.Steps {
		if s.Write {
			n++
		}
	}
	return n
}

// client does operations, all writes with Sync.
func (r *takenRun) client(id int, rng *rand.Rand, ops int, reached func()) {
	for n, stays := 0, rng.IntN(8); n < ops; n++ {
		op := &takenOp{client: id, db: r.db.Load()}
		if op.db != r.first && stays > 0 {
			stays--
			op.db = r.first
		}
		op.call = r.clock.Add(1)
		err := r.do(op, rng)
		op.done = r.clock.Add(1)
		op.Refused = errors.Is(err, kv.ErrConflict)
		op.unknown = err != nil && !op.Refused
		op.fenced = errors.Is(err, objects.ErrFenced)
		r.mu.Lock()
		r.ops = append(r.ops, op)
		r.mu.Unlock()
		if n == ops/2 {
			reached()
		}
	}
}

func (r *takenRun) do(op *takenOp, rng *rand.Rand) error {
	switch rng.IntN(6) {
	case 0:
		op.Name = "Get"
		return r.get(op.db, op, rng.IntN(linear.NumKeys))
	case 1:
		op.Name = "Set"
		return op.db.Set(linear.Key(r.set(op, rng.IntN(linear.NumKeys))), r.encoded(op), kv.Sync)
	case 2:
		op.Name = "Batch"
		b := op.db.NewBatch()
		return errors.Join(r.change(b, op, rng), r.change(b, op, rng), b.Commit(kv.Sync))
	case 3:
		op.Name = "NewIter"
		return r.scan(op.db, op)
	}
	op.Name = "Tx"
	tx, err := op.db.Begin(true)
	if err != nil {
		return err
	}
	err = errors.Join(r.get(tx, op, rng.IntN(linear.NumKeys)), r.change(tx, op, rng),
		r.get(tx, op, rng.IntN(linear.NumKeys)))
	if err != nil {
		return errors.Join(err, tx.Discard())
	}
	return tx.Commit(kv.Sync)
}

// set adds a write of a new value to an operation.
func (r *takenRun) set(op *takenOp, key int) int {
	op.Write(key, r.value.Add(1))
	return key
}

// encoded returns the value of the last step.
func (r *takenRun) encoded(op *takenOp) []byte {
	return strconv.AppendInt(nil, int64(op.Steps[len(op.Steps)-1].Value), 10)
}

// number returns the number of a value that a client wrote, and fails the test if it is none.
func (r *takenRun) number(value []byte) int32 {
	n, err := strconv.ParseInt(string(value), 10, 32)
	storetest.Fine(r.t, err)
	require.Positive(r.t, n)
	return int32(n)
}

func (r *takenRun) change(to linear.Writer, op *takenOp, rng *rand.Rand) error {
	k := rng.IntN(linear.NumKeys)
	if rng.IntN(8) == 0 {
		op.Write(k, 0)
		return to.Delete(linear.Key(k))
	}
	return to.Set(linear.Key(r.set(op, k)), r.encoded(op))
}

func (r *takenRun) get(from kv.Reader, op *takenOp, k int) error {
	v, err := from.Get(linear.Key(k))
	step := linear.Step{Key: k}
	if err == nil {
		step.Value = r.number(v)
	} else if !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	op.Steps = append(op.Steps, step)
	return nil
}

func (r *takenRun) scan(from kv.Reader, op *takenOp) error {
	it, err := from.NewIter(nil)
	if err != nil {
		return err
	}
	var found linear.State
	for ok := it.First(); ok; ok = it.Next() {
		found[it.Key()[1]-'0'] = r.number(it.Value())
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	for k, v := range found {
		op.Steps = append(op.Steps, linear.Step{Key: k, Value: v})
	}
	return nil
}

// history returns what must be linearizable. A writer that was taken over and does not know it yet reads what is past:
// what it read counts only if it acknowledged a write that began later. An operation that failed has taken effect
// before its first value was read, or at the end of all time, after all reads. It has none if no operation read what it
// wrote and it deleted nothing, or if it began when its writer had been taken over.
func (r *takenRun) history() (history []porcupine.Operation, unknown int) {
	owned := map[*kv.DB]int64{r.db.Load(): math.MaxInt64} // until when a DB is known to have had the store
	for _, op := range r.ops {
		if !op.unknown && !op.Refused && op.writes() > 0 {
			owned[op.db] = max(owned[op.db], op.call)
		}
	}
	past := func(op *takenOp) bool { return (op.Refused || op.writes() == 0) && op.done > owned[op.db] }
	seen := map[int32]int64{} // when a value was read first by another operation, at the latest
	for _, op := range r.ops {
		own := map[int32]bool{}
		for _, s := range op.Steps {
			own[s.Value] = own[s.Value] || s.Write
			if at, ok := seen[s.Value]; !own[s.Value] && !op.unknown && !past(op) && (!ok || op.done < at) {
				seen[s.Value] = op.done
			}
		}
	}
	for _, op := range r.ops {
		o := porcupine.Operation{ClientId: op.client, Input: &op.Op, Call: op.call, Return: op.done}
		switch {
		case op.unknown:
			unknown++
			writes := &linear.Op{Name: op.Name + "?"}
			o.Input, o.Return = writes, math.MaxInt64
			matters := false
			for _, s := range op.Steps {
				if !s.Write {
					continue
				}
				writes.Steps = append(writes.Steps, s)
				at, read := seen[s.Value]
				matters = matters || s.Value == 0 || read
				if s.Value != 0 && read {
					o.Return = min(o.Return, at)
				}
			}
			if !matters || op.db == r.first && op.call > r.taken {
				continue
			}
		case past(op):
			continue
		}
		history = append(history, o)
	}
	return history, unknown
}

// requireSilence requires that the writer before answers nothing once it has said that it was taken over.
func (r *takenRun) requireSilence() {
	told := int64(math.MaxInt64)
	for _, op := range r.ops {
		if op.db == r.first && op.fenced && op.writes() == 0 {
			told = min(told, op.done)
		}
	}
	for _, op := range r.ops {
		require.False(r.t, op.db == r.first && op.call > told && !op.unknown, "an answer of a writer that knows")
	}
}

// Transactions, batches and lookups of a store in an object store with troubles are linearizable. So they are if
// another writer takes the store over in their middle, while the one before is at work or cut off.
func TestLinearizableAcrossATakeOver(t *testing.T) {
	t.Parallel()
	unknown, ops := 0, 0
	for seed := range uint64(max(scale.Count(12, 24), 6)) {
		s := newObjectsStore(t)
		rng := rand.New(rand.NewPCG(seed, 41))
		open := func(rule objstoretest.Rule, bound time.Duration) (*kv.DB, *objstoretest.Faults) {
			faults := objstoretest.NewFaults(s, rng.Uint64())
			o := objectsOptions(rng, faults)
			configOf(o).MaxStaleness = bound
			db, err := kv.Open("", o)
			require.NoError(t, err)
			faults.Inject(rule)
			return db, faults
		}
		names := []string{"lost replies", "late requests", "lost requests", "throttled", "truncated replies", "slow"}
		rule := storeFaults[names[seed%uint64(len(names))]]
		r := &takenRun{t: t}
		var faults *objstoretest.Faults
		bound := time.Duration(seed/2%2) * 20 * time.Millisecond // half of the writers ask whether they still are
		r.first, faults = open(rule, bound)
		r.db.Store(r.first)
		half := make(chan struct{})
		reached := sync.OnceFunc(func() { close(half) })
		var clients sync.WaitGroup
		for c := range 4 {
			random := rand.New(rand.NewPCG(seed, uint64(c)))
			clients.Go(func() { r.client(c, random, 16, reached) })
		}
		<-half
		faults.Partition(seed%2 == 0)
		next, _ := open(rule, 0)
		r.taken = r.clock.Add(1)
		r.db.Store(next)
		faults.Partition(false)
		clients.Wait()
		faults.Deliver()
		last := &takenOp{db: next, client: 4, call: r.clock.Add(1)}
		require.NoError(t, r.scan(next, last))
		last.done = r.clock.Add(1)
		r.ops = append(r.ops, last)
		history, n := r.history()
		unknown, ops = unknown+n, ops+len(history)
		linear.Require(t, history, fmt.Sprint("seed ", seed))
		faults.Inject(noFault)
		if bound > 0 {
			storetest.Until(func() bool { return errors.Is(r.get(r.first, &takenOp{}, 0), objects.ErrFenced) })
			require.ErrorIs(t, r.first.Sync(t.Context()), objects.ErrFenced)
			r.requireSilence()
		}
		require.Error(t, r.first.Set(linear.Key(0), nil, kv.Sync))
		harness.Settle(r.first) // while it was cut off its log broke, and it may not have learned why yet
		require.ErrorIs(t, r.first.Set(linear.Key(0), nil, kv.Sync), objects.ErrFenced)
		require.ErrorIs(t, r.first.Close(), objects.ErrFenced)
		require.NoError(t, next.Close())
	}
	require.Positive(t, unknown)
	t.Logf("%d operations, %d of unknown outcome", ops, unknown)
}
