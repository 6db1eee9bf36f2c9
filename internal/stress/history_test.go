package stress

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
)

// A keyspace is the keys of one worker and what it did to them since the store was last
// checked.
type keyspace struct {
	prefix  string
	number  int
	journal *journal // is told what happens; it may be nil

	mu   sync.Mutex
	last uint64       // number of the last operation
	base cells        // when the store was last checked
	ops  []*operation // since then
	past []*operation // before, as far as the store had them
	now  cells        // what readers see: base, and all operations that were acknowledged
}

// An operation changes keys of one keyspace, all at one moment.
type operation struct {
	id     uint64
	name   string
	writes []write
	level  level

	submitted  bool
	start, end int64 // ticks
	state      opState
	durable    bool  // when it was acknowledged
	err        error // of one that failed

	counter int // that it increments; -1: none
	value   int64
}

type opState uint8

const (
	pending opState = iota
	acknowledged
	failed  // it may be there, or not
	refused // it is not there
)

// A level is how durable a write was asked to be.
type level uint8

const (
	levelSync level = iota
	levelNoSync
	levelAsync
)

func (l level) String() string { return []string{"Sync", "NoSync", "Async"}[l] }

func (o *operation) String() string {
	s := fmt.Sprintf("operation %d (%s, %v, %d writes, ticks %d-%d)", o.id, o.name, o.level, len(o.writes), o.start,
		o.end)
	if o.err != nil {
		s += fmt.Sprintf(", which failed with %q", o.err)
	}
	return s
}

// markKey is the key that holds the number of the last operation.
func (k *keyspace) markKey() string { return k.prefix + "#" }

// parseMark returns the number in a value of the mark. Operands are appended to it.
func parseMark(v string) (uint64, error) {
	_, v, _ = cutLast(v, operandSeparator)
	v, _, _ = strings.Cut(v, " ")
	return strconv.ParseUint(v, 10, 64)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// begin notes an operation that is about to be tried. A write of the mark with its number
// is the first of its writes.
func (k *keyspace) begin(name string, l level, tick int64) *operation {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	o := &operation{id: k.last, name: name, level: l, start: tick, counter: -1}
	o.writes = []write{{kind: writeSet, key: k.markKey(), value: strconv.FormatUint(o.id, 10)}}
	return o
}

// submit makes an operation with all its writes known to those who check. It is about to
// be committed. A second time it does nothing: a transaction was tried again.
func (k *keyspace) submit(o *operation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !o.submitted {
		o.submitted = true
		k.ops = append(k.ops, o)
		k.journal.write(record{Kind: recordSubmit, Space: k.number, Op: recordOf(o, true)})
		return
	}
	k.journal.write(record{Kind: recordSubmit, Space: k.number, Op: recordOf(o, false)})
}

// finish notes how an operation ended.
func (k *keyspace) finish(o *operation, s opState, tick int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o.state, o.end, o.err = s, tick, err
	if s == acknowledged {
		k.now.apply(o.writes)
	}
	k.journal.write(record{Kind: recordFinish, Space: k.number, Op: recordOf(o, false)})
}

// current returns what readers see now. Only the keyspace's worker changes it.
func (k *keyspace) current() cells { return k.now }

// clone returns what readers see now, to be kept.
func (k *keyspace) clone() cells {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.now)
}

// after returns the model after the operation with a number, and the index of this
// operation, -1 for the base. It is not known, or cannot have been the last, if ok is
// false. The caller holds k.mu.
func (k *keyspace) after(id uint64) (c cells, index int, ok bool) {
	c = maps.Clone(k.base)
	if v, there := k.base.get(k.markKey(), 0); !there && id == 0 {
		return c, -1, true
	} else if there {
		if n, err := parseMark(v); err == nil && n == id {
			return c, -1, true
		}
	}
	for i, o := range k.ops {
		if o.id == id {
			c.apply(o.writes)
			return c, i, o.state != refused
		}
		if o.state == acknowledged {
			c.apply(o.writes)
		}
	}
	return nil, 0, false
}
