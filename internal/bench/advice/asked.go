package advice

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// asked is what a trace asked for.
type asked struct {
	trace advise.Trace
	keys  [][]byte // by number of advise.Trace.Keys; nil: the trace has hashes
	found []bool   // by lookup: what the trace says
	scans []scan   // by number of advise.Trace.Scans
	vague int      // scans whose bounds are not known
	walk  *keys.Walk
}

// readAsked reads a trace, up to so many lookups.
func readAsked(ctx context.Context, path string, most int) (*asked, error) {
	a := &asked{}
	numbers := map[string]int32{}
	var found []bool // by lookup
	visit := func(l *lookuptrace.Lookup) error {
		if len(a.trace.Lookups)%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(a.trace.Lookups) >= most {
			a.trace.Cut++
			return nil
		}
		name := string(l.Key)
		if l.Key == nil {
			name = hashName(l.Hash)
		}
		n, ok := numbers[name]
		if !ok {
			n = int32(len(numbers))
			numbers[name] = n
			if l.Key != nil {
				a.keys = append(a.keys, []byte(name))
			}
			a.trace.Keys = append(a.trace.Keys, advise.Key{Hash: l.Hash, Pathless: l.Key == nil})
		}
		k := &a.trace.Keys[n]
		k.Found = k.Found || l.Found
		a.trace.Lookups = append(a.trace.Lookups, advise.Lookup{Key: n, At: l.At})
		found = append(found, l.Found)
		return nil
	}
	scanned := func(s *lookuptrace.Scan) error {
		if one, of, ok := scanOf(s); !ok || len(a.scans) >= most {
			a.vague++
		} else {
			a.trace.Scans, a.scans = append(a.trace.Scans, one), append(a.scans, of)
		}
		return nil
	}
	w, err := keys.WalkRecords(path, visit, scanned)
	if err != nil {
		return nil, err
	}
	a.walk, a.trace.OneIn, a.trace.Dropped = w, int(w.OneIn), w.Dropped
	a.sort(found)
	return a, nil
}

func hashName(hash uint64) string {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(hash >> (8 * i))
	}
	return string(b)
}

// sort orders lookups and scans by time, each with what belongs to them.
func (a *asked) sort(found []bool) {
	lookups, scans := a.trace.Lookups, a.trace.Scans
	of := a.scans
	order := byTime(len(lookups), func(i int32) time.Duration { return lookups[i].At })
	a.trace.Lookups, a.found = pick(lookups, order), pick(found, order)
	order = byTime(len(scans), func(i int32) time.Duration { return scans[i].At })
	a.trace.Scans, a.scans = pick(scans, order), pick(of, order)
	if n := len(lookups); n > 0 {
		a.trace.Span = a.trace.Lookups[n-1].At - a.trace.Lookups[0].At
	}
}

// byTime returns the numbers below n in the order of the moments that at returns.
func byTime(n int, at func(i int32) time.Duration) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(at(x), at(y)) })
	return order
}

// pick returns elements in an order.
func pick[T any](all []T, order []int32) []T {
	picked := make([]T, len(order))
	for i, n := range order {
		picked[i] = all[n]
	}
	return picked
}

// locate finds the path of each key in a store.
func (a *asked) locate(ctx context.Context, s *store, tick func(int)) error {
	for i, key := range a.keys {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		k, err := s.path(key)
		if err != nil {
			return err
		}
		a.trace.Keys[i] = k
		tick(1)
	}
	for i := range a.scans {
		if i%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.parts(&a.trace.Scans[i], &a.scans[i]); err != nil {
			return err
		}
		tick(1)
	}
	s.noteSizes()
	for i, l := range a.trace.Lookups {
		if k := &a.trace.Keys[l.Key]; !k.Pathless && k.Found != a.found[i] {
			a.trace.Changed++
		}
	}
	return nil
}
