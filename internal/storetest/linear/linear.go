// Package linear checks that concurrent histories of lookups, scans, writes, batches and transactions are linearizable.
package linear

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

	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
)

// NumKeys is how many keys a history is about: few, so that all depends on all.
const NumKeys = 5

// A State is the store: a value for each key, 0 where there is none.
type State [NumKeys]int32

// An Op is an operation of the store, a batch or a transaction alike: steps
// that take effect at one moment between its call and its return.
type Op struct {
	Name  string
	Steps []Step
	// A transaction that was refused has no effect. What it read was the store at one moment all the same.
	Refused bool
}

// A Step is a read that found a value, or a write.
type Step struct {
	Write bool
	Key   int
	Value int32 // 0: absent, or a deletion
}

// Model is the sequential specification: a map.
var Model = porcupine.Model{
	Init: func() any { return State{} },
	Step: func(state, input, _ any) (bool, any) {
		before, _ := state.(State)
		op, _ := input.(*Op)
		now := before
		for _, s := range op.Steps {
			if s.Write {
				now[s.Key] = s.Value
			} else if now[s.Key] != s.Value {
				return false, before
			}
		}
		if op.Refused {
			return true, before
		}
		return true, now
	},
	DescribeOperation: func(input, _ any) string {
		op, _ := input.(*Op)
		return op.String()
	},
}

// String returns what a failed test shows of the operation.
func (o *Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(", o.Name)
	for _, s := range o.Steps {
		fmt.Fprintf(&b, " %d%s%d", s.Key, map[bool]string{false: "=", true: ":="}[s.Write], s.Value)
	}
	if o.Refused {
		b.WriteString(" refused")
	}
	return b.String() + " )"
}

// A run records the history of concurrent clients.
type run struct {
	t     testing.TB
	db    *kv.DB
	clock atomic.Int64  // orders calls and returns
	value atomic.Int32  // each value is written once
	pad   string        // makes values long enough to fill memtables
	ended chan struct{} // asks for a flush and a compaction, after an operation

	mu      sync.Mutex
	history []porcupine.Operation
}

// Key returns the key of a number.
func Key(n int) []byte { return []byte{'k', byte('0' + n)} }

// Clients do random operations at the same time.
type Clients struct {
	Number, Ops int    // of clients, and of the operations of each
	Pad         string // makes values longer
	Random      func(client int) *rand.Rand
}

// Check has the clients work on a store while it is flushed and compacted, and requires that their history is
// linearizable. It returns the number of operations. The goroutine that compacts begins when an operation has ended.
// On one processor operations interleave in their calls of files only if the file system lets other goroutines run
// there, as vfstest.YieldingFS does.
func (c Clients) Check(t testing.TB, db *kv.DB, what string) int {
	t.Helper()
	r := &run{t: t, db: db, ended: make(chan struct{}, 1), pad: c.Pad}
	c.work(r)
	Require(t, r.history, what)
	return len(r.history)
}

// work has the clients work.
func (c Clients) work(r *run) {
	var clients, background sync.WaitGroup
	for id := range c.Number {
		clients.Go(func() { r.client(id, c.Random(id), c.Ops) })
	}
	background.Go(func() {
		for range r.ended {
			r.compact()
		}
	})
	clients.Wait()
	close(r.ended)
	background.Wait()
}

// Require requires that there is an order of operations that respects their calls and returns, and that a map would
// have answered the same. What names their history.
func Require(t testing.TB, history []porcupine.Operation, what string) {
	t.Helper()
	if porcupine.CheckOperations(Model, history) {
		return
	}
	for _, o := range history {
		t.Logf("client %d [%d, %d] %s", o.ClientId, o.Call, o.Return, o.Input)
	}
	require.FailNow(t, "the history of "+what+" is not linearizable")
}

func (r *run) client(id int, rng *rand.Rand, ops int) {
	for range ops {
		op := &Op{}
		call := r.clock.Add(1)
		switch n := rng.IntN(12); {
		case n < 3:
			op.Name = "Get"
			r.get(r.db, op, rng.IntN(NumKeys))
		case n < 4:
			op.Name = "NewIter"
			r.scan(r.db, op, rng)
		case n < 5:
			op.Name = "Set"
			k, v := rng.IntN(NumKeys), r.next()
			op.Write(k, v)
			require.NoError(r.t, r.db.Set(Key(k), r.encode(v), durabilityOf(rng)))
		case n < 6:
			op.Name = "Delete"
			k := rng.IntN(NumKeys)
			op.Write(k, 0)
			require.NoError(r.t, r.db.Delete(Key(k), durabilityOf(rng)))
		case n < 8:
			op.Name = "Batch"
			b := r.db.NewBatch()
			r.writes(b, op, rng, 1+rng.IntN(4))
			require.NoError(r.t, b.Commit(durabilityOf(rng)))
		default:
			op.Name = "Tx"
			r.transaction(op, rng)
		}
		r.note(id, op, call)
		select {
		case r.ended <- struct{}{}:
		default: // it is asked for already
		}
	}
}

// read looks a key up.
func (r *run) read(client, k int) {
	call, op := r.clock.Add(1), &Op{Name: "Get"}
	r.get(r.db, op, k)
	r.note(client, op, call)
}

// note adds an operation to the history, which returns now.
func (r *run) note(client int, op *Op, call int64) {
	done := r.clock.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: op, Call: call, Return: done})
}

func (r *run) compact() {
	require.NoError(r.t, errors.Join(r.db.Flush(context.Background()), r.db.Compact(context.Background(), nil, nil)))
}

func durabilityOf(rng *rand.Rand) *kv.WriteOptions {
	return []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[rng.IntN(3)]
}

func (r *run) next() int32 { return r.value.Add(1) }

func (r *run) encode(v int32) []byte { return []byte(strconv.Itoa(int(v)) + r.pad) }

func (r *run) number(b []byte) int32 {
	n, err := strconv.Atoi(strings.TrimRight(string(b), "-"))
	require.NoError(r.t, err)
	return int32(n)
}

// Write adds a write to the operation; the value 0 deletes.
func (o *Op) Write(key int, value int32) {
	o.Steps = append(o.Steps, Step{Write: true, Key: key, Value: value})
}

func (r *run) get(from kv.Reader, op *Op, k int) {
	s := Step{Key: k}
	if v, err := from.Get(Key(k)); err == nil {
		s.Value = r.number(v)
	} else {
		require.ErrorIs(r.t, err, kv.ErrNotFound)
	}
	op.Steps = append(op.Steps, s)
}

// scan reads a range of keys, in either direction.
func (r *run) scan(from kv.Reader, op *Op, rng *rand.Rand) {
	lo, hi := rng.IntN(NumKeys), rng.IntN(NumKeys+1)
	it, err := from.NewIter(&kv.IterOptions{LowerBound: Key(lo), UpperBound: Key(hi)})
	require.NoError(r.t, err)
	var found State
	first, next := it.First, it.Next
	if rng.IntN(2) == 0 {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		found[it.Key()[1]-'0'] = r.number(it.Value())
	}
	require.NoError(r.t, it.Close())
	for k := lo; k < hi; k++ {
		op.Steps = append(op.Steps, Step{Key: k, Value: found[k]})
	}
}

// A Writer is a batch or a transaction.
type Writer interface {
	Set(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(lo, hi []byte) error
}

func (r *run) writes(to Writer, op *Op, rng *rand.Rand, n int) {
	for range n {
		k := rng.IntN(NumKeys)
		switch rng.IntN(6) {
		case 0:
			op.Write(k, 0)
			require.NoError(r.t, to.Delete(Key(k)))
		case 1:
			hi := rng.IntN(NumKeys + 1)
			for i := k; i < hi; i++ {
				op.Write(i, 0)
			}
			require.NoError(r.t, to.DeleteRange(Key(k), Key(hi)))
		default:
			v := r.next()
			op.Write(k, v)
			require.NoError(r.t, to.Set(Key(k), r.encode(v)))
		}
	}
}

func (r *run) transaction(op *Op, rng *rand.Rand) {
	writable := rng.IntN(5) > 0
	tx := stores.Begin(r.t, r.db, writable)
	for range 1 + rng.IntN(3) {
		switch n := rng.IntN(6); {
		case n < 3:
			r.get(tx, op, rng.IntN(NumKeys))
		case n < 4:
			r.scan(tx, op, rng)
		case writable:
			r.writes(tx, op, rng, 1)
		}
		if rng.IntN(6) == 0 {
			r.compact() // what the transaction sees must outlast it
		}
		runtime.Gosched()
	}
	if rng.IntN(10) == 0 {
		op.Refused = true
		require.NoError(r.t, tx.Discard())
		return
	}
	if err := tx.Commit(durabilityOf(rng)); err != nil {
		require.ErrorIs(r.t, err, kv.ErrConflict)
		op.Refused = true
	}
}
