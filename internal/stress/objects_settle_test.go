package stress

import (
	"maps"
	"strconv"
)

// settle holds what a process has found, and what readers have seen before, against what all before have done.
func (l *objectsLife) settle(c content) *Finding {
	l.oracle.abandon()
	var at content // what the reader sees at last
	if l.reader != nil {
		r := l.reader
		l.reader.send(order{Kind: orderWork})
		end, ok, f := l.takeUntil(r, recordEnd)
		if f == nil {
			f, _ = l.drain(r)
		}
		if l.reader = nil; f != nil {
			return f
		}
		if !ok {
			return found("follower", "a reader in another process has ended: %s", r.stderr.String())
		}
		at = end.Found
		if at == nil {
			at = content{}
		}
	}
	if f := l.checkViews(); f != nil {
		return f
	}
	v, f := l.oracle.settle("after "+l.lastEnd, c, false)
	if f != nil {
		return f
	}
	l.counts.settled(v)
	if at == nil {
		return nil
	}
	if diff := difference(l.oracle.base(uint64(far)), at); diff != "" {
		return found("follower", "a reader in another process, when all had ended by %s: %s", l.lastEnd, diff)
	}
	return nil
}

// base returns what the store had when it was last checked, as of a time.
func (o *oracle) base(now uint64) content {
	c := content{}
	for _, k := range o.spaces {
		maps.Copy(c, k.base.at(now))
	}
	for n, value := range o.counters {
		if value > 0 {
			c[counterKey(n)] = strconv.FormatInt(value, 10)
		}
	}
	return c
}

// checkViews holds what a reader has seen against the model: prefixes, none shorter than the one before.
func (l *objectsLife) checkViews() *Finding {
	now := l.oracle.clock.micros.Swap(far)
	defer l.oracle.clock.micros.Store(now)
	marks := make([]uint64, len(l.oracle.spaces))
	for n, c := range l.views {
		if f := l.oracle.checkView("a reader in another process", c, nil); f != nil {
			return f
		}
		for i, k := range l.oracle.spaces {
			mark, _ := parseMark(c[k.markKey()])
			if mark < marks[i] && k.wasAcknowledged(marks[i]) {
				return found("follower", "view %d of a reader in another process has %s as after operation %d, and "+
					"the one before had %d", n, k.prefix, mark, marks[i])
			}
			marks[i] = mark
		}
	}
	l.counts.views += len(l.views)
	l.views = nil
	return nil
}

// wasAcknowledged reports whether an operation since the base was acknowledged. One that was not may be seen for a
// while and then be gone.
func (k *keyspace) wasAcknowledged(id uint64) bool {
	for _, op := range k.ops {
		if op.id == id {
			return op.state == acknowledged
		}
	}
	return true
}
