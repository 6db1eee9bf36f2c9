package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/lookupsample"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// asked is what was asked of a store: the keys of a trace, whose paths are not known yet.
type asked struct {
	trace advise.Trace
	keys  [][]byte       // by number of trace.Keys; nil: there is only a hash
	found []bool         // by lookup
	scans []askedScan    // by scan
	oneIn float64        // more precisely than trace.OneIn
	names map[string]int // while they are collected: numbers of keys
}

// An askedScan is a scan with what is known of its bounds.
type askedScan struct {
	start, end []byte // nil: the first key, the last or none
	backward   bool
	ended      bool
	hashed     bool // bounds are not known
}

// maxAsked bounds the lookups, and the scans, that are taken from a trace.
const maxAsked = 2_000_000

// askedOfSample returns what a sample has. Its lookups are taken to have come in even intervals.
func askedOfSample(s lookupsample.Sample) *asked {
	span := time.Since(s.Since)
	a := &asked{keys: s.Keys, oneIn: s.OneIn}
	a.trace = advise.Trace{OneIn: int(math.Round(s.OneIn)), Span: span, Dropped: s.Dropped,
		Keys: make([]advise.Key, len(s.Keys))}
	moment := func(i, n int) time.Duration { return span / time.Duration(n) * time.Duration(i) }
	for i, l := range s.Lookups {
		a.lookup(l.Key, l.Found, moment(i, len(s.Lookups)))
	}
	for i, o := range s.Scans {
		a.scan(advise.Scan{At: moment(i, len(s.Scans)), Entries: int(min(o.Entries, math.MaxInt32))},
			askedScan{start: o.Start, end: o.End, backward: o.Backward, ended: o.Ended})
	}
	return a
}

func (a *asked) lookup(key int32, found bool, at time.Duration) {
	a.trace.Lookups = append(a.trace.Lookups, advise.Lookup{Key: key, At: at})
	a.trace.Keys[key].Found = found // the last one says what is there now
	a.found = append(a.found, found)
}

func (a *asked) scan(s advise.Scan, o askedScan) {
	a.trace.Scans = append(a.trace.Scans, s)
	a.scans = append(a.scans, o)
}

// askedOfTrace reads a trace.
func askedOfTrace(ctx context.Context, trace io.Reader) (*asked, error) {
	r, err := lookuptrace.NewReader(trace, "the trace")
	if err != nil {
		return nil, err
	}
	h := r.Header()
	a := &asked{names: map[string]int{}, oneIn: float64(h.OneIn)}
	a.trace.OneIn = int(h.OneIn)
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l, s, err := r.NextRecord()
		if errors.Is(err, io.EOF) || errors.Is(err, lookuptrace.ErrUnfinished) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("after %d good records: %w", n, err)
		}
		a.record(&l, s)
	}
	a.trace.Dropped = r.Dropped()
	a.names = nil
	a.sort()
	return a, nil
}

// record takes a record of a trace.
func (a *asked) record(l *lookuptrace.Lookup, s *lookuptrace.Scan) {
	if s != nil {
		if len(a.scans) < maxAsked {
			own := func(b *lookuptrace.Bound) []byte {
				if !b.Set {
					return nil
				}
				return append([]byte{}, b.Key...)
			}
			a.scan(advise.Scan{At: s.At, Entries: int(min(s.Entries, math.MaxInt32)),
				Bounded: s.Start.Set && s.End.Set, Prefix: s.Common}, askedScan{start: own(&s.Start), end: own(&s.End),
				backward: s.Backward, ended: s.Ended, hashed: s.Start.Set && s.Start.Key == nil ||
					s.End.Set && s.End.Key == nil})
		}
		return
	}
	if len(a.found) == maxAsked {
		a.trace.Cut++
		return
	}
	name, key := string(l.Key), []byte(nil)
	if l.Key == nil {
		name = strconv.FormatUint(l.Hash, 10)
	}
	n, there := a.names[name]
	if !there {
		n = len(a.keys)
		a.names[name] = n
		if l.Key != nil {
			key = []byte(name)
		}
		a.keys = append(a.keys, key)
		a.trace.Keys = append(a.trace.Keys, advise.Key{Hash: l.Hash, Pathless: key == nil})
	}
	a.lookup(int32(n), l.Found, l.At)
}

// sort orders lookups and scans by time.
func (a *asked) sort() {
	type at struct {
		lookup advise.Lookup
		found  bool
	}
	all := make([]at, len(a.found))
	for i, l := range a.trace.Lookups {
		all[i] = at{l, a.found[i]}
	}
	slices.SortStableFunc(all, func(x, y at) int { return cmp.Compare(x.lookup.At, y.lookup.At) })
	for i, l := range all {
		a.trace.Lookups[i], a.found[i] = l.lookup, l.found
		a.trace.Keys[l.lookup.Key].Found = l.found
	}
	order := make([]int, len(a.scans))
	for i := range order {
		order[i] = i
	}
	scans, about := slices.Clone(a.trace.Scans), slices.Clone(a.scans)
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(scans[x].At, scans[y].At) })
	for i, n := range order {
		a.trace.Scans[i], a.scans[i] = scans[n], about[n]
	}
	if n := len(all); n > 0 {
		a.trace.Span = all[n-1].lookup.At - all[0].lookup.At
	}
}

// hashKeys gives keys that are known the hashes by which the model tells them apart.
func (a *asked) hashKeys() {
	for i, key := range a.keys {
		if key != nil {
			a.trace.Keys[i].Hash = filterpolicy.Hash(key)
		}
	}
}
