package stress

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
)

// An oracle knows what a store may hold.
type oracle struct {
	clock   *clock
	ticks   atomic.Int64
	spaces  []*keyspace
	journal *journal // is told what happens; it may be nil

	counters []int64 // when the store was last checked

	mu          sync.Mutex
	lastSuccess int64 // when the last write that succeeded had begun
	mustTick    int64 // operations that had ended before are durable
	increments  map[increment]*operation
}

// An increment is what a transaction makes of a common counter.
type increment struct {
	counter int
	value   int64
}

const commonCounters = 3

func newOracle(workers int) *oracle {
	o := &oracle{clock: newClock(), counters: make([]int64, commonCounters), increments: map[increment]*operation{}}
	for n := range workers {
		k := &keyspace{prefix: fmt.Sprintf("w%02d/", n), number: n, base: cells{}, now: cells{}}
		o.spaces = append(o.spaces, k)
	}
	return o
}

func counterKey(n int) string { return fmt.Sprintf("tx/%d", n) }

func (o *oracle) tick() int64 { return o.ticks.Add(1) }

// acknowledged notes an operation that succeeded. It returns what is wrong with that.
func (o *oracle) acknowledged(k *keyspace, op *operation) *Finding {
	op.durable = op.durable || op.level == levelSync
	k.finish(op, acknowledged, o.tick(), nil)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lastSuccess = max(o.lastSuccess, op.start)
	if op.durable {
		o.mustTick = max(o.mustTick, op.start)
	}
	if op.counter < 0 {
		return nil
	}
	inc := increment{op.counter, op.value}
	if other := o.increments[inc]; other != nil {
		return found("serializability", "two transactions made the common counter %d to be %d: %v, and %v",
			inc.counter, inc.value, other, op)
	}
	o.increments[inc] = op
	return nil
}

// durable notes that everything is durable that had been acknowledged at a tick.
func (o *oracle) durable(tick int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mustTick = max(o.mustTick, tick)
	o.journal.write(record{Kind: recordDurable, Ticks: tick})
}

func parseCounter(v string) (int64, error) { return strconv.ParseInt(v, 10, 64) }
