package stress

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Finding is something that the store did and must not do.
type Finding struct {
	Kind string
	Text string
}

func found(kind, format string, args ...any) *Finding {
	return &Finding{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// maxText bounds what is printed of a finding, in bytes: a store may be damaged in many
// places, and have many goroutines.
const maxText = 16 << 10

// text returns the beginning of the text.
func (f *Finding) text() string {
	if len(f.Text) > maxText {
		return f.Text[:maxText] + "..."
	}
	return f.Text
}

// A content is what a reader sees of a store.
type content map[string]string

// of returns what belongs to a keyspace.
func (c content) of(prefix string) content {
	m := content{}
	for k, v := range c {
		if strings.HasPrefix(k, prefix) {
			m[k] = v
		}
	}
	return m
}

// A place is how far a store has a keyspace's history.
type place struct {
	index int // of its last operation; -1: none since the base
	cells cells
}

// locate finds out how far a content has a keyspace's history, and that it has all of it
// up to there. The caller holds k.mu.
func (k *keyspace) locate(c content, now uint64) (place, *Finding) {
	got, id := c.of(k.prefix), uint64(0)
	if v, ok := got[k.markKey()]; ok {
		n, err := parseMark(v)
		if err != nil {
			return place{}, found("wrong value", "the mark of %s is %q", k.prefix, v)
		}
		id = n
	}
	want, index, ok := k.after(id)
	if !ok {
		return place{}, found("came back",
			"%s is as after operation %d, which is not in its history of %d operations since it was as after %v: "+
				"it was not there before, or cannot be",
			k.prefix, id, len(k.ops), k.base[k.markKey()])
	}
	if diff := difference(want.at(now), got); diff != "" {
		last := "its base"
		if index >= 0 {
			last = k.ops[index].String()
		}
		return place{}, found("not a prefix", "%s is as after %s, but %s", k.prefix, last, diff)
	}
	return place{index, want}, nil
}

// difference describes how two contents differ; empty: they do not.
func difference(want, got map[string]string) string {
	var diffs []string
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[k]; !ok {
			diffs = append(diffs, fmt.Sprintf("%q is missing, which should be %.60q", k, want[k]))
		} else if v != want[k] {
			diffs = append(diffs, fmt.Sprintf("%q is %.60q (%d bytes) and should be %.60q (%d bytes)", k, v, len(v),
				want[k], len(want[k])))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			diffs = append(diffs, fmt.Sprintf("%q is %.60q and should not be there", k, got[k]))
		}
	}
	if len(diffs) > 4 {
		diffs = append(diffs[:4], fmt.Sprintf("and %d more", len(diffs)-4))
	}
	return strings.Join(diffs, "; ")
}

// checkView holds a content that may be from the past against the model: what it has is a
// prefix of the writes. Of the keyspace self, if there is one, it has everything. Failed
// operations may be there.
func (o *oracle) checkView(what string, c content, self *keyspace) *Finding {
	h := noHole()
	for _, k := range o.spaces {
		k.mu.Lock()
		p, f := k.locate(c, o.clock.now())
		if f == nil {
			h.note(k, p)
		}
		if f == nil && k == self {
			if diff := difference(k.now.at(o.clock.now()), c.of(k.prefix)); diff != "" {
				f = found("stale", "%s has not all that was acknowledged before: %s", k.prefix, diff)
			}
		}
		k.mu.Unlock()
		if f != nil {
			f.Text = what + ": " + f.Text
			return f
		}
	}
	return h.finding(what)
}

// A hole is a write that is missing although a later one is there.
type hole struct {
	present, lost         *operation
	lastStart, firstEnd   int64
	presentIn, missingFor string
}

func noHole() *hole { return &hole{firstEnd: math.MaxInt64} }

// note takes a keyspace in. The caller holds its lock.
func (h *hole) note(k *keyspace, p place) {
	for i, op := range k.ops {
		switch {
		case (op.state == acknowledged && i < p.index || i == p.index) && op.start > h.lastStart:
			h.present, h.lastStart, h.presentIn = op, op.start, k.prefix
		case i > p.index && op.state == acknowledged && op.end < h.firstEnd:
			h.lost, h.firstEnd, h.missingFor = op, op.end, k.prefix
		}
	}
}

func (h *hole) finding(what string) *Finding {
	if h.lastStart <= h.firstEnd {
		return nil
	}
	return found("hole", "%s: %s has %v, and %s lacks %v, which was acknowledged before that began", what,
		h.presentIn, h.present, h.missingFor, h.lost)
}

// A verdict says how a store that was opened compares with its model.
type verdict struct {
	checked int // acknowledged operations that are there
	lost    int // acknowledged operations that are not there and need not be
	came    int // operations that are there although they failed, and may
}

// settle holds everything that a store has after an opening against the model, and makes
// it the base of what comes. Of a store whose process alone died, everything must be there
// that was acknowledged with NoSync.
func (o *oracle) settle(what string, c content, killed bool) (v verdict, f *Finding) {
	h := noHole()
	rest := maps.Clone(c)
	counters := slices.Clone(o.counters)
	places := make([]place, len(o.spaces))
	for n, k := range o.spaces {
		k.mu.Lock()
		p, f := k.locate(c, o.clock.now())
		if f == nil {
			h.note(k, p)
			f = o.judge(k, p, killed, &v)
		}
		for i, op := range k.ops {
			if op.counter >= 0 && (op.state == acknowledged && i < p.index || i == p.index) {
				counters[op.counter] = max(counters[op.counter], op.value)
			}
		}
		k.mu.Unlock()
		if f != nil {
			f.Text = what + ": " + f.Text
			return v, f
		}
		places[n] = p
		maps.DeleteFunc(rest, func(key, _ string) bool { return strings.HasPrefix(key, k.prefix) })
	}
	if f := h.finding(what); f != nil {
		return v, f
	}
	want := content{}
	for n, value := range counters {
		if value > 0 {
			want[counterKey(n)] = strconv.FormatInt(value, 10)
		}
	}
	if diff := difference(want, rest); diff != "" {
		return v, found("common counters", "%s: %s", what, diff)
	}
	o.rebase(places, counters)
	return v, nil
}

// judge says whether operations are lost that must be there, or are there that must not.
// The caller holds k.mu.
func (o *oracle) judge(k *keyspace, p place, killed bool, v *verdict) *Finding {
	for i, op := range k.ops {
		there := i <= p.index && op.state == acknowledged || i == p.index
		must := op.durable || op.end < o.mustTick || killed && op.level == levelNoSync
		switch {
		case op.state == acknowledged && there:
			v.checked++
		case op.state == acknowledged && must:
			return found("lost", "%s has lost %v, which was acknowledged and durable: it has %d of %d operations",
				k.prefix, op, p.index+1, len(k.ops))
		case op.state == acknowledged:
			v.lost++
		case there && op.end < o.lastSuccess:
			return found("came back", "%s has %v, although a write that began later succeeded (tick %d): the "+
				"store had resumed", k.prefix, op, o.lastSuccess)
		case there:
			v.came++
		}
	}
	return nil
}

// rebase makes what was found the beginning of what comes.
func (o *oracle) rebase(places []place, counters []int64) {
	for n, k := range o.spaces {
		k.mu.Lock()
		k.keep(places[n])
		k.base, k.ops, k.now = places[n].cells, nil, maps.Clone(places[n].cells)
		k.mu.Unlock()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counters, o.mustTick, o.lastSuccess = counters, 0, 0
	clear(o.increments)
}
