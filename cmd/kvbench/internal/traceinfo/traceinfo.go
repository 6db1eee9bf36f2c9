// Package traceinfo sums up what is in a lookup trace.
package traceinfo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

type sum struct {
	*keys.Walk
	span   float64 // seconds until the last lookup or scan
	values int     // lookups that asked for a value, and not only whether it is there
	missed int     // of keys that were found at other times

	minKey, maxKey, keyBytes int // of keys, by lookup
	seen                     map[uint64]count
	scans                    struct{ bounded, backward, broken, empty, keysOnly, entries, most, common int }
}

type count struct{ lookups, found uint32 }

// Read sums a trace up as rows: of all lookups, of scans, and of keys that were found and those that never were. It
// takes some 30 bytes of memory for each key. A trace without an end is summed up as far as it goes; damage is an
// error.
func Read(ctx context.Context, path string, argv []string) (*tidy.Result, error) {
	s := &sum{seen: map[uint64]count{}}
	n := 0
	ended := func() error {
		if n++; n%4096 == 1 {
			return ctx.Err()
		}
		return nil
	}
	var err error
	s.Walk, err = keys.WalkTrace(path, func(l *lookuptrace.Lookup) error {
		s.lookup(l)
		return ended()
	}, func(l *lookuptrace.Scan) error {
		s.scan(l)
		return ended()
	})
	if err != nil {
		return nil, err
	}
	return s.result(path, argv), nil
}

func (s *sum) result(path string, argv []string) *tidy.Result {
	form := "hashes of keys"
	if s.Keys {
		form = "keys"
	}
	about := fmt.Sprintf("Lookup trace %s with %s, recorded %s", path, form,
		s.Start.UTC().Format(time.DateTime+" UTC"))
	if s.OneIn > 1 {
		about += fmt.Sprintf(", one key in %d", s.OneIn)
	}
	r := tidy.New("trace", about, map[string]any{"path": path, "start": s.Start, "hashed": !s.Keys,
		"one_in": s.OneIn, "unfinished": s.Unfinished}, environ.Capture(argv, "."))
	s.addTo(r)
	r.Environment.Warnings = s.warnings() // no times were measured
	return r
}

func (s *sum) lookup(l *lookuptrace.Lookup) {
	if len(s.seen) == 0 || l.Size < s.minKey {
		s.minKey = l.Size
	}
	s.maxKey, s.keyBytes = max(s.maxKey, l.Size), s.keyBytes+l.Size
	s.span = max(s.span, l.At.Seconds())
	s.values += one(l.Value)
	hash := l.Hash
	if l.Key != nil {
		hash = xxhash.Sum64(l.Key)
	}
	c := s.seen[hash]
	c.lookups, c.found = c.lookups+1, c.found+uint32(one(l.Found))
	s.seen[hash] = c
}

func (s *sum) scan(l *lookuptrace.Scan) {
	s.span = max(s.span, l.At.Seconds())
	t := &s.scans
	t.bounded += one(l.Start.Set && l.End.Set)
	t.backward += one(l.Backward)
	t.broken += one(!l.Ended)
	t.empty += one(l.Entries == 0)
	t.keysOnly += one(l.KeysOnly)
	t.entries += int(l.Entries)
	t.most = max(t.most, int(l.Entries))
	t.common += l.Common
}

// one counts what is so.
func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (s *sum) addTo(r *tidy.Result) {
	var found, never []uint32
	for _, c := range s.seen {
		if c.found == 0 {
			never = append(never, c.lookups)
			continue
		}
		found = append(found, c.lookups)
		s.missed += int(c.lookups - c.found)
	}
	type numbers []struct {
		metric, unit string
		value        float64
	}
	add := func(of tidy.Cell, list numbers) {
		for _, n := range list {
			r.Add(of, n.metric, n.unit, n.value)
		}
	}
	mean := func(sum int, n int64) float64 { return float64(sum) / float64(max(1, n)) }
	add(tidy.Cell{}, numbers{{"size", "bytes", float64(s.Bytes)}, {"span", "s", s.span},
		{"lookups", "", float64(s.Lookups)}, {"value-lookups", "", float64(s.values)},
		{"missed-lookups", "", float64(s.missed)}, {"dropped", "", float64(s.Dropped)},
		{"least-key", "bytes", float64(s.minKey)}, {"mean-key", "bytes", mean(s.keyBytes, s.Lookups)},
		{"largest-key", "bytes", float64(s.maxKey)}})
	t := &s.scans
	add(tidy.Of("of", "scans"), numbers{{"scans", "", float64(s.Scans)}, {"bounded", "", float64(t.bounded)},
		{"backward", "", float64(t.backward)}, {"broken", "", float64(t.broken)}, {"empty", "", float64(t.empty)},
		{"keys-only", "", float64(t.keysOnly)}, {"entries", "/scan", mean(t.entries, s.Scans)},
		{"most-entries", "/scan", float64(t.most)}, {"common-bytes", "bytes", mean(t.common, int64(t.bounded))}})
	addKeys(r, "found", found)
	addKeys(r, "never found", never)
}

// addKeys adds rows of keys by how often each was looked up: how many there are, and the part of the lookups that the
// most popular of them have.
func addKeys(r *tidy.Result, which string, counts []uint32) {
	slices.Sort(counts)
	slices.Reverse(counts)
	lookups, once := 0, 0
	for _, n := range counts {
		lookups += int(n)
		once += one(n == 1)
	}
	of := tidy.Of("keys", which)
	r.Add(of, "lookups", "", float64(lookups))
	r.Add(of, "keys", "", float64(len(counts)))
	r.Add(of, "once", "", float64(once))
	sum, tops := 0, []float64{0.001, 0.01, 0.1, 0.5}
	for i, n := range counts {
		sum += int(n)
		for len(tops) > 0 && float64(i+1) >= tops[0]*float64(len(counts)) {
			r.Add(of.With("top", tops[0]), "share", "of lookups", float64(sum)/float64(lookups))
			tops = tops[1:]
		}
	}
}

func (s *sum) warnings() []string {
	var w bench.Remarks
	w.If(s.Unfinished, "the trace has no end: its process was killed, is still recording, or the file was cut; what "+
		"came after is not in it")
	w.If(s.Dropped > 0, "lookups or scans were dropped: the trace's writer was too slow; record fewer keys "+
		"(lookuptrace.Options.OneIn)")
	w.If(s.missed > 0, "%s did not find a key that others found: it was written or deleted meanwhile; a replay takes "+
		"it as existing", bench.Times(s.missed, "lookup"))
	return w
}
