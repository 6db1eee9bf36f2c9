package cell

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/kv/metrics"
)

// Scans are what scans between two bounds did. Every entry that they met was counted and checked.
type Scans struct {
	Scans       int              `json:"scans"`   // of a repetition
	Entries     int              `json:"entries"` // that they met, of all repetitions
	Repetitions []ScanRepetition `json:"repetitions"`
	Counters    metrics.Scans    `json:"-"` // of all repetitions
}

// A ScanRepetition is one timed loop of scans.
type ScanRepetition struct {
	Ns       int64         `json:"ns"` // of the whole loop
	Counters metrics.Scans `json:"-"`  // in JSON they are rows, of all repetitions
}

// usualWidth is how wide empty ranges are, of the mean distance of two keys.
const usualWidth = 0.1

// A scanKind is what the setting scan says.
type scanKind struct {
	entries int
	behind  bool
	width   float64 // of an empty range, in mean distances of two keys
	given   bool    // width is
}

// scanKind reads the setting: 0 or 0:WIDTH for empty ranges, behind, or a number of entries.
func (s *Settings) scanKind() (k scanKind, err error) {
	number, width, given := strings.Cut(s.Scan, ":")
	k = scanKind{width: usualWidth, given: given}
	if s.Scan == Behind {
		k.behind = true
		return k, nil
	}
	k.entries, err = strconv.Atoi(number)
	if given && err == nil {
		k.width, err = strconv.ParseFloat(width, 64)
	}
	const widest = 100
	if err != nil || k.entries < 0 || k.entries > 100_000 || !(k.width > 0 && k.width <= widest) ||
		given && k.entries > 0 {
		return k, bench.Usagef("scan %s: choose from %s, 0, 0:WIDTH with a width of at most %d mean distances of two "+
			"keys, "+
			"%s, or a number of entries up to 100000", s.Scan, NoScan, widest, Behind)
	}
	return k, nil
}

func (s *Settings) checkScan() error {
	if s.Range != "" {
		if err := engine.CheckRange(s.Range); err != nil {
			return err
		}
		if s.Engine != "siftkv" {
			return engine.Unsupported("range %s: only siftkv has range filters", s.Range)
		}
	}
	if s.Scan == "" {
		return nil
	}
	k, err := s.scanKind()
	switch {
	case err != nil:
		return err
	case s.Engine != "siftkv":
		return engine.Unsupported("scan %s: only siftkv counts what scans do", s.Scan)
	case s.Workload != Uniform || s.Threads != 1:
		return engine.Unsupported("scan %s: scans are of workload %s with one thread", s.Scan, Uniform)
	case k.given && !keys.IsCount(s.Keys):
		return engine.Unsupported("scan %s: of keys of a file, empty ranges are what begins with an absent key", s.Scan)
	}
	return nil
}

type scanner struct {
	kind    scanKind
	present [][]byte // in order
	source  keys.Source
	random  *rand.Rand
	met     int
}

// A span is the bounds of a scan and the number of entries between them.
type span struct {
	lo, hi  []byte
	entries int
}

func (x *run) newScanner() (*scanner, error) {
	kind, err := x.settings.scanKind()
	if err != nil {
		return nil, err
	}
	n := x.source.Present()
	s := &scanner{kind: kind, present: make([][]byte, n), source: x.source,
		random: rand.New(rand.NewPCG(x.settings.Seed, x.settings.DataSeed))}
	for i := range s.present {
		s.present[i] = x.source.AppendPresent(nil, i)
	}
	slices.SortFunc(s.present, bytes.Compare)
	if kind.entries >= n {
		return nil, bench.Usagef("scan %d: there are %d keys", kind.entries, n)
	}
	return s, nil
}

func (s *scanner) draw() span {
	for {
		var p span
		switch at := s.random.IntN(len(s.present) - s.kind.entries); {
		case s.kind.entries > 0:
			return span{s.present[at], s.present[at+s.kind.entries], s.kind.entries}
		case s.kind.behind:
			p.lo = append(bytes.Clone(s.present[at]), 0)
			p.hi = append(bytes.Clone(p.lo), 0xff)
		default:
			p.lo, p.hi = s.empty()
		}
		i, _ := slices.BinarySearchFunc(s.present, p.lo, bytes.Compare)
		if bytes.Compare(p.lo, p.hi) < 0 && (i == len(s.present) || bytes.Compare(s.present[i], p.hi) >= 0) {
			return p
		}
	}
}

// empty draws a range that is likely to be empty: of generated keys, somewhere; of others, what begins with an absent
// one.
func (s *scanner) empty() (lo, hi []byte) {
	if _, ok := s.source.(*keys.Generated); !ok {
		lo = s.source.AppendAbsent(nil, s.random.IntN(s.source.Absent()))
		return lo, append(bytes.Clone(lo), 0xff)
	}
	lo = s.source.AppendAbsent(nil, s.random.IntN(s.source.Absent()))
	width := s.kind.width * math.MaxUint64 / float64(len(s.present))
	start := s.random.Uint64()
	hi = bytes.Clone(lo)
	for i := range 8 {
		lo[i] = byte(start >> (56 - 8*i))
		hi[i] = byte((start + uint64(min(width, float64(math.MaxUint64-start)))) >> (56 - 8*i))
	}
	return lo, hi
}

func (s *scanner) scan(store engine.Ranger, p span) error {
	met := 0
	if err := store.ScanBetween(p.lo, p.hi, func(_, _ []byte) { met++ }); err != nil {
		return err
	}
	if met != p.entries {
		return fmt.Errorf("%w: a scan from %x to %x met %d entries, and there are %d", bench.ErrWrongAnswer, p.lo, p.hi,
			met, p.entries)
	}
	s.met += met
	return nil
}

// scan warms the store up, or makes it cold, and times scans.
func (x *run) scan(ctx context.Context) (*Scans, error) {
	s, err := x.newScanner()
	if err != nil {
		return nil, err
	}
	n := int(x.settings.Lookups)
	out := &Scans{Scans: n}
	phase := x.phase("scan", n*int(x.settings.Reps), "scans")
	defer phase.Done()
	if x.settings.State == Warm {
		if _, err := x.loopScans(ctx, s, n); err != nil {
			return nil, err
		}
	}
	s.met = 0
	for range x.settings.Reps {
		if err := x.dropCaches(); err != nil {
			return nil, err
		}
		rep, err := x.loopScans(ctx, s, n)
		if err != nil {
			return nil, err
		}
		out.Repetitions = append(out.Repetitions, rep)
		out.Counters = out.Counters.Add(rep.Counters)
		phase.Add(n)
	}
	out.Entries = s.met
	return out, nil
}

func (x *run) loopScans(ctx context.Context, s *scanner, n int) (rep ScanRepetition, err error) {
	store, ok := x.built.store.(engine.Ranger)
	if !ok {
		return rep, engine.Unsupported("scan %s: %s counts nothing", x.settings.Scan, x.settings.Engine)
	}
	spans := make([]span, n)
	for i := range spans {
		spans[i] = s.draw()
	}
	before, start := store.Scans(), time.Now()
	for i := range spans {
		if err := s.scan(store, spans[i]); err != nil {
			return rep, err
		}
		if i%1024 == 0 && ctx.Err() != nil {
			return rep, ctx.Err()
		}
	}
	rep.Ns, rep.Counters = int64(time.Since(start)), store.Scans().Sub(before)
	return rep, nil
}

const (
	ruleScans      = "files within the bounds of scans = denied + empty but read + with entries"
	ruleScanOracle = "false positives of the range oracle = 0"
	ruleScanEmpty  = "files with entries within the bounds of empty scans = 0"
)

func checkScans(r *Result, c *measure.Checker) {
	if r.Scans == nil {
		return
	}
	c.Out.Rules = append(c.Out.Rules, ruleScans, ruleScanEmpty, ruleScanOracle)
	for i, rep := range r.Scans.Repetitions {
		c.Where = fmt.Sprintf("%s, scans, repetition %d", r.Name, i+1)
		t := rep.Counters
		c.Equal(ruleScans, engine.Count(t.Files),
			engine.Count(t.DeniedByPrefix+t.DeniedByRange+t.Empty+t.WithEntries))
		if r.Scans.Entries == 0 {
			c.Equal(ruleScanEmpty, engine.Count(t.WithEntries), 0)
		}
		if strings.HasPrefix(r.Settings.Range, engine.OracleFilter) {
			c.Equal(ruleScanOracle, engine.Count(t.RangeFalsePositives), 0)
		}
	}
}

// ScanKind is the kind of metrics that are of scans.
const ScanKind = "scan"

func scanMetrics(r *Result) []Metric {
	if r.Scans == nil {
		return nil
	}
	var times []float64
	for _, rep := range r.Scans.Repetitions {
		times = append(times, float64(rep.Ns)/float64(r.Scans.Scans))
	}
	out := []Metric{{Kind: ScanKind, Unit: "ns/op", Value: measure.Median(times), Better: lower, Samples: times}}
	t, made := r.Scans.Counters, float64(r.Scans.Scans*len(r.Scans.Repetitions))
	for _, m := range []struct {
		unit, better string
		n            uint64
	}{
		{"files/op", lower, t.Files}, {"denied/op", "", t.DeniedByPrefix + t.DeniedByRange},
		{"empty/op", lower, t.Empty}, {"with-entries/op", "", t.WithEntries},
		{"false-positives/op", lower, t.RangeFalsePositives},
		{"blocks/op", lower, t.BlocksFromCache + t.BlocksFromDisk}, {"disk-blocks/op", lower, t.BlocksFromDisk},
		{"disk-bytes/op", lower, t.BytesFromDisk},
	} {
		out = append(out, Metric{Kind: ScanKind, Unit: m.unit, Value: float64(m.n) / made, Exact: true,
			Better: m.better})
	}
	return out
}
