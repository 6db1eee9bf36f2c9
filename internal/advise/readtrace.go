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

// ReadTrace returns the first most lookups and the first most scans of a lookup trace; Trace.Cut counts the rest. The
// paths of keys and scans are not known yet, and a key without its bytes is Pathless. A trace without an end is read as
// far as it goes. Damage is an error that matches base.ErrCorruption, and if ctx ends, the error is that of ctx.
func ReadTrace(ctx context.Context, r *lookuptrace.Reader, most int) (*Trace, error) {
	t := &Trace{OneIn: int(r.Header().OneIn)}
	var lookups []Lookup
	names := named{numbers: map[string]int32{}}
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l, s, err := r.NextRecord()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, lookuptrace.ErrUnfinished):
			t.Dropped = r.Dropped()
			t.sort(names.keys, lookups)
			return t, nil
		case err != nil:
			return nil, fmt.Errorf("after %d good records: %w", n, err)
		case s != nil && len(t.Scans) < most:
			t.Scans = append(t.Scans, scanOf(s))
		case s == nil && len(lookups) < most:
			lookups = append(lookups, Lookup{Key: names.number(&l), Found: l.Found, At: l.At})
		default:
			t.Cut++
		}
	}
}

// named are keys by what a trace has of them: their bytes, or hashes.
type named struct {
	keys    []Key
	numbers map[string]int32
}

// number returns the number of the key that was looked up.
func (m *named) number(l *lookuptrace.Lookup) int32 {
	var hash [8]byte
	name := l.Key
	if name == nil {
		name = binary.LittleEndian.AppendUint64(hash[:0], l.Hash)
	}
	n, ok := m.numbers[string(name)]
	if ok {
		return n
	}
	n = int32(len(m.keys))
	m.numbers[string(name)] = n
	k := Key{Hash: l.Hash, Pathless: true}
	if l.Key != nil {
		k = Key{Bytes: bytes.Clone(l.Key), Hash: filterpolicy.Hash(l.Key)}
	}
	m.keys = append(m.keys, k)
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

// sort orders scans and lookups of keys by time, and sets what follows from their order.
func (t *Trace) sort(keys []Key, lookups []Lookup) {
	t.Scans = byTime(t.Scans, func(s *Scan) time.Duration { return s.At })
	t.SetLookups(keys, byTime(lookups, func(l *Lookup) time.Duration { return l.At }))
	if n := len(t.Lookups); n > 0 {
		t.Span = t.Lookups[n-1].At - t.Lookups[0].At
	}
}

// byTime returns all in the order of time. Items of one moment stay in their order.
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
