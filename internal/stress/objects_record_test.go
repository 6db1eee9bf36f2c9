package stress

import (
	"encoding/gob"
	"io"
	"maps"
	"sync"
)

// A record is what a process tells whoever started it. What it does is told before it is begun, and how it ended when
// that is known: of a process that was killed, nothing is known to have ended of which nobody was told.
type record struct {
	Kind   recordKind
	Name   string
	Text   string
	Space  int // whose operation it is
	Op     opRecord
	Ticks  int64
	Micros int64             // of the clock
	Found  map[string]string // what the store has

	Consumer *consumerRecord
}

type recordKind uint8

const (
	recordOpened   recordKind = iota // the store; the process waits for the time
	recordFound                      // Found is what the store has; the process waits for a state
	recordSubmit                     // Op is about to be committed; after the first time without its writes
	recordFinish                     // Op has ended
	recordDurable                    // all is durable that had ended at Ticks
	recordClock                      // the clock is about to be at Micros
	recordCount                      // something of a name was done
	recordSlot                       // something of a name was done with a slot
	recordStrike                     // something of a name went wrong
	recordView                       // a reader has Found
	recordConsumer                   // Consumer is what one of a slot goes on with
	recordYielded                    // the slot of a name has yielded Op
	recordReady                      // the last order has been obeyed
	recordFenced                     // another process has taken over, and the store says so
	recordFinding                    // Name is its kind
	recordEnd                        // the process has done all; Text says how its store was closed
)

// An opRecord is an operation.
type opRecord struct {
	ID         uint64
	Name       string
	Level      level
	Writes     []writeRecord
	Start, End int64
	State      opState
	Durable    bool
	Err        string
	Counter    int
	Value      int64
}

type writeRecord struct {
	Kind       writeKind
	Key, Value string
	Expiry     uint64
}

func recordOf(o *operation, withWrites bool) opRecord {
	r := opRecord{ID: o.id, Name: o.name, Level: o.level, Start: o.start, End: o.end, State: o.state,
		Durable: o.durable, Counter: o.counter, Value: o.value}
	if o.err != nil {
		r.Err = o.err.Error()
	}
	for _, w := range o.writes {
		if withWrites {
			r.Writes = append(r.Writes, writeRecord{w.kind, w.key, w.value, w.expiry})
		}
	}
	return r
}

// operationOf is the inverse of recordOf for one that has not ended.
func operationOf(r *opRecord) *operation {
	o := &operation{id: r.ID, name: r.Name, level: r.Level, start: r.Start, submitted: true, counter: r.Counter,
		value: r.Value}
	for _, w := range r.Writes {
		o.writes = append(o.writes, write{w.Kind, w.Key, w.Value, w.Expiry})
	}
	return o
}

// A stateRecord is what a store has, for the process that goes on with it.
type stateRecord struct {
	Last     []uint64 // operation of each keyspace
	Cells    []map[string]cellRecord
	Counters []int64
	Ticks    int64
	Micros   int64

	Past      [][]opRecord // of each keyspace, those that some consumer has not
	Consumers []consumerRecord
}

type cellRecord struct {
	Base     string
	Set      bool
	Expiry   uint64
	Operands []string
}

func (o *oracle) state() *stateRecord {
	s := &stateRecord{Counters: o.counters, Ticks: o.ticks.Load(), Micros: o.clock.micros.Load()}
	for _, k := range o.spaces {
		s.Last, s.Cells = append(s.Last, k.last), append(s.Cells, recordCells(k.base))
	}
	return s
}

// restore makes a state the base of what comes.
func (o *oracle) restore(s *stateRecord) {
	o.counters = s.Counters
	o.ticks.Store(s.Ticks)
	o.clock.micros.Store(s.Micros)
	for n, k := range o.spaces {
		k.base, k.last = cellsOf(s.Cells[n]), s.Last[n]
		k.now = maps.Clone(k.base)
	}
}

// An order is what a process is told.
type order struct {
	Kind   orderKind
	State  *stateRecord
	Micros int64
}

type orderKind uint8

const (
	orderOpen      orderKind = iota // the store
	orderRead                       // the store, as of Micros, when all before have ended
	orderWork                       // from State on; a reader looks once more, and ends
	orderExpect                     // another process is about to take over
	orderPartition                  // the same, and the object store cannot be reached
	orderHeal                       // it can
)

// A journal writes records to whoever started this process.
type journal struct {
	mu  sync.Mutex
	enc *gob.Encoder
}

func newJournal(w io.Writer) *journal { return &journal{enc: gob.NewEncoder(w)} }

// write fails only if nobody is there any more, which kills the process soon.
func (j *journal) write(r record) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.enc.Encode(r)
}

// replay takes in what another process has done to a store.
func (o *oracle) replay(r record) *Finding {
	o.ticks.Store(max(o.ticks.Load(), r.Ticks, r.Op.Start, r.Op.End))
	switch r.Kind {
	case recordDurable:
		o.durable(r.Ticks)
	case recordClock:
		o.clock.micros.Store(max(o.clock.micros.Load(), r.Micros))
	case recordSubmit, recordFinish:
		return o.replayOperation(r)
	}
	return nil
}

func (o *oracle) replayOperation(r record) *Finding {
	k := o.spaces[r.Space]
	k.last = max(k.last, r.Op.ID)
	var op *operation
	if n := len(k.ops); n > 0 && k.ops[n-1].id == r.Op.ID {
		op = k.ops[n-1]
	}
	if op == nil && r.Kind == recordFinish {
		return nil // it was never committed
	}
	if op == nil {
		op = operationOf(&r.Op)
		k.ops = append(k.ops, op)
	}
	op.level, op.counter, op.value, op.durable = r.Op.Level, r.Op.Counter, r.Op.Value, r.Op.Durable
	if r.Kind == recordSubmit {
		return nil
	}
	var err error
	if r.Op.Err != "" {
		err = storedError(r.Op.Err)
	}
	if r.Op.State != acknowledged {
		k.finish(op, r.Op.State, r.Op.End, err)
		return nil
	}
	f := o.acknowledged(k, op)
	op.end = r.Op.End
	return f
}

// A storedError is one of another process.
type storedError string

func (e storedError) Error() string { return string(e) }

// abandon says that a process has ended: what it was doing may be there, or not.
func (o *oracle) abandon() {
	for _, k := range o.spaces {
		for _, op := range k.ops {
			if op.state == pending {
				k.finish(op, failed, o.tick(), storedError("the process has ended"))
			}
		}
	}
}
