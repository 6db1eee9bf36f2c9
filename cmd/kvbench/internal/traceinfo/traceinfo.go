// Package traceinfo sums up what is in a lookup trace.
package traceinfo

import (
	"context"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// Schema names the form of a Trace in JSON.
const Schema = "kvbench.traceinfo/v1"

// A Trace is what is in a lookup trace.
type Trace struct {
	Schema     string        `json:"schema"`
	Path       string        `json:"path"`
	Bytes      int64         `json:"bytes"`
	Start      time.Time     `json:"start"`
	Span       time.Duration `json:"span_ns"` // until the last lookup
	Hashed     bool          `json:"hashed"`
	OneIn      uint32        `json:"one_in"`
	Lookups    int64         `json:"lookups"`
	Values     int64         `json:"value_lookups"`  // that asked for a value, and not only whether it is there
	Missed     int64         `json:"missed_lookups"` // of keys that were found at other times
	Dropped    uint64        `json:"dropped"`
	Unfinished bool          `json:"unfinished"`
	Sizes      Sizes         `json:"key_bytes"` // by lookup
	Existing   Part          `json:"existing"`  // keys that were found at least once
	Absent     Part          `json:"absent"`    // keys that never were
	Scans      Scans         `json:"scans"`
}

// Scans are those of a trace.
type Scans struct {
	Scans    int64   `json:"scans"`
	Bounded  int64   `json:"bounded"`   // of them, those that have a start and an end
	Backward int64   `json:"backward"`  // that descend
	Broken   int64   `json:"broken"`    // that were broken off before their end
	Empty    int64   `json:"empty"`     // that came to no entry
	KeysOnly int64   `json:"keys_only"` // that asked for no values
	Entries  float64 `json:"entries"`   // that one comes to, on average
	Most     uint64  `json:"most"`      // that one came to
	Common   float64 `json:"common"`    // bytes that start and end have in common, on average of those that are bounded
}

// Sizes are those of keys in bytes.
type Sizes struct {
	Min  int     `json:"min"`
	Mean float64 `json:"mean"`
	Max  int     `json:"max"`
}

// A Part is the lookups of some of the keys.
type Part struct {
	Lookups int64   `json:"lookups"`
	Keys    int64   `json:"keys"` // distinct
	Once    int64   `json:"once"` // keys that were looked up once
	Top     []Share `json:"top"`
}

// A Share is the part of the lookups that the most popular keys have.
type Share struct {
	OfKeys    float64 `json:"of_keys"`
	OfLookups float64 `json:"of_lookups"`
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
	r := &Trace{Schema: Schema, Path: path}
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
