package advise

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// ReadTrace returns what a lookup trace has, up to so many lookups and as many scans; Trace.Cut counts what comes
// behind. Where keys and scans lead is not known yet: of a key Found is what its last lookup says, and without its
// bytes it is Pathless. A trace without an end is read as far as it goes. Damage is an error that matches
// base.ErrCorruption, and if ctx ends, the error is that of ctx.
func ReadTrace(ctx context.Context, r *lookuptrace.Reader, most int) (*Trace, error) {
	t := &Trace{OneIn: int(r.Header().OneIn)}
	numbers := map[string]int32{}
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l, s, err := r.NextRecord()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, lookuptrace.ErrUnfinished):
			t.Dropped = r.Dropped()
			t.sort()
			return t, nil
		case err != nil:
			return nil, fmt.Errorf("after %d good records: %w", n, err)
		case s != nil && len(t.Scans) < most:
			t.Scans = append(t.Scans, scanOf(s))
		case s == nil && len(t.Lookups) < most:
			t.Lookups = append(t.Lookups, Lookup{Key: t.number(&l, numbers), Found: l.Found, At: l.At})
		default:
			t.Cut++
		}
	}
}

// number returns the number of the key that was looked up, by those of the keys or hashes that came before.
func (t *Trace) number(l *lookuptrace.Lookup, numbers map[string]int32) int32 {
	var hash [8]byte
	name := l.Key
	if name == nil {
		name = binary.LittleEndian.AppendUint64(hash[:0], l.Hash)
	}
	n, ok := numbers[string(name)]
	if ok {
		return n
	}
	n = int32(len(t.Keys))
	numbers[string(name)] = n
	k := Key{Hash: l.Hash, Pathless: true}
	if l.Key != nil {
		k = Key{Bytes: bytes.Clone(l.Key), Hash: filterpolicy.Hash(l.Key)}
	}
	t.Keys = append(t.Keys, k)
	return n
}

// scanOf returns a scan of a trace, with copies of what is known of its bounds.
func scanOf(s *lookuptrace.Scan) Scan {
	o := Scan{At: s.At, Entries: int(min(s.Entries, math.MaxInt32)), Bounded: s.Start.Set && s.End.Set,
		Prefix: s.Common, Start: bytes.Clone(s.Start.Key), End: bytes.Clone(s.End.Key), Backward: s.Backward,
		Ended: s.Ended}
	for _, b := range []*lookuptrace.Bound{&s.Start, &s.End} {
		o.Hashed = o.Hashed || b.Set && b.Key == nil
		o.Shortened = o.Shortened || b.Key != nil && len(b.Key) < b.Size
	}
	return o
}

// sort orders lookups and scans by time, and sets what follows from their order.
func (t *Trace) sort() {
	t.Lookups = byTime(t.Lookups, func(l *Lookup) time.Duration { return l.At })
	t.Scans = byTime(t.Scans, func(s *Scan) time.Duration { return s.At })
	for _, l := range t.Lookups {
		t.Keys[l.Key].Found = l.Found
	}
	if n := len(t.Lookups); n > 0 {
		t.Span = t.Lookups[n-1].At - t.Lookups[0].At
	}
}

// byTime returns all in the order of time. What is of one moment stays in its order.
func byTime[T any](all []T, at func(*T) time.Duration) []T {
	order := make([]int32, len(all))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int {
		return cmp.Or(cmp.Compare(at(&all[x]), at(&all[y])), cmp.Compare(x, y))
	})
	sorted := make([]T, len(all))
	for i, n := range order {
		sorted[i] = all[n]
	}
	return sorted
}
