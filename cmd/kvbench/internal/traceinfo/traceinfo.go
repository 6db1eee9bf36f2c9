// Package traceinfo sums up what is in a lookup trace.
package traceinfo

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// A Trace is what is in a lookup trace.
type Trace struct {
	Path       string
	Bytes      int64
	Start      time.Time
	Span       time.Duration // until the last lookup
	Hashed     bool
	OneIn      uint32
	Lookups    int64
	Values     int64 // that asked for a value, and not only whether it is there
	Missed     int64 // of keys that were found at other times
	Dropped    uint64
	Unfinished bool
	Sizes      Sizes // by lookup
	Existing   Part  // keys that were found at least once
	Absent     Part  // keys that never were
	Scans      Scans
}

// Scans are those of a trace.
type Scans struct {
	Scans    int64
	Bounded  int64   // of them, those that have a start and an end
	Backward int64   // that descend
	Broken   int64   // that were broken off before their end
	Empty    int64   // that came to no entry
	KeysOnly int64   // that asked for no values
	Entries  float64 // that one comes to, on average
	Most     uint64  // that one came to
	Common   float64 // bytes that start and end have in common, on average of those that are bounded
}

// Sizes are those of keys in bytes.
type Sizes struct {
	Min  int
	Mean float64
	Max  int
}

// A Part is the lookups of some of the keys.
type Part struct {
	Lookups int64
	Keys    int64 // distinct
	Once    int64 // keys that were looked up once
	Top     []Share
}

// A Share is the part of the lookups that the most popular keys have.
type Share struct {
	OfKeys    float64
	OfLookups float64
}

// Rows returns the same as rows: of all lookups, of scans, and of keys that were found and those that never were.
func (r *Trace) Rows(argv []string) *tidy.Result {
	settings := map[string]any{"path": r.Path, "start": r.Start, "hashed": r.Hashed, "one_in": r.OneIn,
		"unfinished": r.Unfinished}
	out := tidy.New("trace", "Lookup trace "+r.Path, settings, environ.Capture(argv, "."))
	out.Environment.Warnings = append(out.Environment.Warnings, r.Warnings()...)
	add := func(of tidy.Cell, unit string, values map[string]float64) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			out.Add(of, name, unit, values[name])
		}
	}
	add(tidy.Cell{}, "", map[string]float64{"lookups": float64(r.Lookups), "value-lookups": float64(r.Values),
		"missed-lookups": float64(r.Missed), "dropped": float64(r.Dropped)})
	add(tidy.Cell{}, "bytes", map[string]float64{"size": float64(r.Bytes), "least-key": float64(r.Sizes.Min),
		"mean-key": r.Sizes.Mean, "largest-key": float64(r.Sizes.Max)})
	add(tidy.Cell{}, "s", map[string]float64{"span": r.Span.Seconds()})
	s := &r.Scans
	add(tidy.Of("of", "scans"), "", map[string]float64{"scans": float64(s.Scans), "bounded": float64(s.Bounded),
		"backward": float64(s.Backward), "broken": float64(s.Broken), "empty": float64(s.Empty),
		"keys-only": float64(s.KeysOnly), "entries": s.Entries, "most-entries": float64(s.Most),
		"common-bytes": s.Common})
	for i, p := range []*Part{&r.Existing, &r.Absent} {
		of := tidy.Of("keys", []string{"found", "never found"}[i])
		add(of, "", map[string]float64{"lookups": float64(p.Lookups), "keys": float64(p.Keys), "once": float64(p.Once)})
		for _, top := range p.Top {
			out.Add(of.With("top", top.OfKeys), "share", "of lookups", top.OfLookups)
		}
	}
	return out
}

// Warnings says what the trace lacks.
func (r *Trace) Warnings() []string {
	var warnings []string
	if r.Unfinished {
		warnings = append(warnings, "the trace has no end: its process was killed, is still recording, or the file "+
			"was cut; what came after is not in it")
	}
	if r.Dropped > 0 {
		warnings = append(warnings, "lookups or scans were dropped: the trace's writer was too slow; record one "+
			"key in so many (lookuptrace.Options.OneIn)")
	}
	if r.Missed > 0 {
		warnings = append(warnings, bench.Times(int(r.Missed), "lookup")+" did not find a key that others found: it "+
			"was written or deleted meanwhile; a replay takes it as existing")
	}
	return warnings
}

// topShares are the parts of the keys that are shown.
var topShares = []float64{0.001, 0.01, 0.1, 0.5}

// count is what a key was asked for.
type count struct {
	lookups, found uint32
}

// Read sums a trace up. It takes some 30 bytes of memory for each key. One without an end
// is summed up as far as it goes; damage is an error.
func Read(ctx context.Context, path string) (*Trace, error) {
	r := &Trace{Path: path}
	seen := map[uint64]count{}
	bytes := 0.0
	scan := func(s *lookuptrace.Scan) error {
		r.Scans.take(s)
		r.Span = max(r.Span, s.At)
		return ctx.Err()
	}
	w, err := keys.WalkRecords(path, func(l *lookuptrace.Lookup) error {
		if r.Lookups%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r.take(l)
		bytes += float64(l.Size)
		hash := l.Hash
		if l.Key != nil {
			hash = xxhash.Sum64(l.Key)
		}
		c := seen[hash]
		c.lookups++
		if l.Found {
			c.found++
		}
		seen[hash] = c
		return nil
	}, scan)
	if err != nil {
		return nil, err
	}
	r.Bytes, r.Start, r.Hashed, r.OneIn = w.Bytes, w.Start, !w.Keys, w.OneIn
	r.Dropped, r.Unfinished = w.Dropped, w.Unfinished
	r.Sizes.Mean = bytes / float64(max(1, r.Lookups))
	r.Scans.Entries /= float64(max(1, r.Scans.Scans))
	r.Scans.Common /= float64(max(1, r.Scans.Bounded))
	r.split(seen)
	return r, nil
}

// take takes in one scan; Entries and Common are sums until all are taken in.
func (t *Scans) take(s *lookuptrace.Scan) {
	count := func(n *int64, is bool) {
		if is {
			*n++
		}
	}
	count(&t.Scans, true)
	count(&t.Bounded, s.Start.Set && s.End.Set)
	count(&t.Backward, s.Backward)
	count(&t.Broken, !s.Ended)
	count(&t.Empty, s.Entries == 0)
	count(&t.KeysOnly, s.KeysOnly)
	t.Entries += float64(s.Entries)
	t.Most = max(t.Most, s.Entries)
	t.Common += float64(s.Common)
}

// take takes in one lookup.
func (r *Trace) take(l *lookuptrace.Lookup) {
	if r.Lookups++; r.Lookups == 1 || l.Size < r.Sizes.Min {
		r.Sizes.Min = l.Size
	}
	r.Sizes.Max = max(r.Sizes.Max, l.Size)
	r.Span = max(r.Span, l.At)
	if l.Value {
		r.Values++
	}
}

// split parts the keys in those that were found and those that were not.
func (r *Trace) split(seen map[uint64]count) {
	var existing, absent []uint32
	for _, c := range seen {
		if c.found == 0 {
			absent = append(absent, c.lookups)
			continue
		}
		existing = append(existing, c.lookups)
		r.Missed += int64(c.lookups - c.found)
	}
	r.Existing, r.Absent = part(existing), part(absent)
}

// part sums up keys by how often each was looked up.
func part(counts []uint32) Part {
	slices.Sort(counts)
	slices.Reverse(counts)
	p := Part{Keys: int64(len(counts)), Top: []Share{}}
	for _, n := range counts {
		p.Lookups += int64(n)
		if n == 1 {
			p.Once++
		}
	}
	sum, next := 0.0, 0
	for i, n := range counts {
		sum += float64(n)
		for next < len(topShares) && float64(i+1) >= topShares[next]*float64(len(counts)) {
			p.Top = append(p.Top, Share{topShares[next], sum / float64(p.Lookups)})
			next++
		}
	}
	return p
}
