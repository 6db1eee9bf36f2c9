package stress

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// lags reports whether there are changes that the consumer has not.
func (c *consumer) lags(o *oracle) bool {
	return slices.ContainsFunc(o.spaces, func(k *keyspace) bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.following(c.now.ids[k.number]) != nil
	})
}

// following returns the first operation after that of a number which is there. The caller holds k.mu.
func (k *keyspace) following(id uint64) *operation {
	i, _ := slices.BinarySearchFunc(k.past, id+1, func(o *operation, id uint64) int { return int(o.id) - int(id) })
	if i < len(k.past) {
		return k.past[i]
	}
	for _, o := range k.ops {
		if o.id > id && o.state == acknowledged {
			return o
		}
	}
	return nil
}

// find returns an operation by its number, and whether it may be in the store. The caller holds k.mu.
func (k *keyspace) find(id uint64) (o *operation, may bool) {
	if i := slices.IndexFunc(k.ops, func(o *operation) bool { return o.id == id }); i >= 0 {
		return k.ops[i], k.ops[i].state == acknowledged || k.ops[i].state == pending
	}
	i, ok := slices.BinarySearchFunc(k.past, id, func(o *operation, id uint64) int { return int(o.id) - int(id) })
	if !ok {
		return nil, false
	}
	return k.past[i], true
}

// keep notes which operations the store has that is about to be the base of what comes. The caller holds k.mu.
func (k *keyspace) keep(p place) {
	for i, op := range k.ops {
		if i <= p.index && op.state == acknowledged || i == p.index {
			k.past = append(k.past, op)
		}
	}
}

// apply takes a change in. It must be the whole of one operation, and the next one of its keyspace. All operations are
// there that had been acknowledged before it began. So the replica is the store as of that moment, key by key. The
// first change of a loop may be the last of the one before.
func (c *consumer) apply(r *round, change *kv.Change, first bool) (f *Finding, err error) {
	var got collector
	if err := change.Replay(&got); err != nil {
		return nil, err
	}
	r.slot("changes")
	what := fmt.Sprintf("slot %s, after %d, change %d to %d of %d writes", c.name, c.now.position, change.First(),
		change.Last(), len(got))
	wrong := func(format string, args ...any) (*Finding, error) {
		return found("change", "%s: %s", what, fmt.Sprintf(format, args...)), nil
	}
	if first && change.Last() == c.now.position {
		return nil, nil
	}
	if change.First() <= c.now.position || change.Last() < change.First() {
		return wrong("it is there already")
	}
	i := slices.IndexFunc(got, func(w write) bool { return strings.HasSuffix(w.key, "/#") && w.kind <= writeMerge })
	if i < 0 {
		return wrong("no operation writes this: %.300v", got)
	}
	k := r.oracle.spaces[slices.IndexFunc(r.oracle.spaces,
		func(k *keyspace) bool { return k.markKey() == got[i].key })]
	id, err := parseMark(got[i].value)
	if err != nil {
		return wrong("%v", err)
	}
	k.mu.Lock()
	op, may := k.find(id)
	missed := k.following(c.now.ids[k.number])
	k.mu.Unlock()
	switch {
	case !may:
		return wrong("it is that of %v, which is not in the store", op)
	case id <= c.now.ids[k.number]:
		return wrong("it is that of %v, and %d came before", op, c.now.ids[k.number])
	case missed != nil && missed.id < id:
		return wrong("it is that of %v, and %v is missing", op, missed)
	}
	for _, other := range r.oracle.spaces {
		other.mu.Lock()
		missed := other.following(c.now.ids[other.number])
		late := missed != nil && missed.end < op.start && other != k
		other.mu.Unlock()
		if late {
			return wrong("it is that of %v, and %v of %s is missing", op, missed, other.prefix)
		}
	}
	before := c.now.cells
	want := maps.Clone(before)
	want.apply(op.writes)
	if op.counter >= 0 {
		n, _ := strconv.ParseInt(before[counterKey(op.counter)].base, 10, 64)
		if n+1 != op.value {
			return wrong("it counts %s from %d to %d", counterKey(op.counter), n, op.value)
		}
		want.apply([]write{{key: counterKey(op.counter), value: strconv.FormatInt(op.value, 10)}})
	}
	c.now.cells = maps.Clone(before)
	c.now.cells.apply(got)
	if !slices.Equal(got, op.writes) {
		diff := cmp.Or(difference(want.at(0), c.now.cells.at(0)), differentEnds(want, c.now.cells))
		if diff != "" {
			return wrong("the replica is not as the store after %v: %s", op, diff)
		}
	}
	c.now.ids[k.number], c.now.position = id, change.Last()
	c.saw(r, k.number, id)
	return nil, nil
}

// differentEnds describes a key whose value ends at another time; empty: there is none.
func differentEnds(want, got cells) string {
	for key, e := range want {
		if e.set && e.expiry != got[key].expiry {
			return fmt.Sprintf("%q ends at %d and should at %d", key, got[key].expiry, e.expiry)
		}
	}
	return ""
}

// A collector takes the writes of a change.
type collector []write

func (c *collector) add(w write) error { *c = append(*c, w); return nil }

func (c *collector) Set(k, v []byte) error {
	return c.add(write{key: string(k), value: string(v)})
}

func (c *collector) SetUntil(k, v []byte, end time.Time) error {
	return c.add(write{kind: writeTTL, key: string(k), value: string(v), expiry: uint64(end.UnixMicro())})
}

func (c *collector) Merge(k, v []byte) error {
	return c.add(write{kind: writeMerge, key: string(k), value: string(v)})
}

func (c *collector) Delete(k []byte) error { return c.add(write{kind: writeDelete, key: string(k)}) }

func (c *collector) DeleteRange(lo, hi []byte) error {
	return c.add(write{kind: writeRange, key: string(lo), value: string(hi)})
}
