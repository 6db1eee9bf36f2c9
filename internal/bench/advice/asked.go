package advice

import (
	"cmp"
	"context"
	"slices"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// asked is what a trace asked for.
type asked struct {
	trace advise.Trace
	keys  [][]byte // by number of advise.Trace.Keys; nil: the trace has hashes
	found []bool   // by lookup: what the trace says
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
	w, err := keys.WalkTrace(path, visit)
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

// sort orders the lookups by time, and what they found with them.
func (a *asked) sort(found []bool) {
	order := make([]int32, len(found))
	for i := range order {
		order[i] = int32(i)
	}
	all := a.trace.Lookups
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(all[x].At, all[y].At) })
	sorted := make([]advise.Lookup, len(all))
	for i, n := range order {
		sorted[i] = all[n]
	}
	a.trace.Lookups = sorted
	if len(sorted) > 0 {
		a.trace.Span = sorted[len(sorted)-1].At - sorted[0].At
	}
	a.found = make([]bool, len(found))
	for i, n := range order {
		a.found[i] = found[n]
	}
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
	s.noteSizes()
	for i, l := range a.trace.Lookups {
		if k := &a.trace.Keys[l.Key]; !k.Pathless && k.Found != a.found[i] {
			a.trace.Changed++
		}
	}
	return nil
}
