package compare

import (
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// A Verdict says whether SiftKV reaches a target.
type Verdict struct {
	Title       string  `json:"title"`
	Compression string  `json:"compression"`
	Against     string  `json:"against"`           // the engine that decides: the best of those meant
	Target      float64 `json:"target"`            // times as good, at least; 0 for a figure that has to be 0
	AtMost      bool    `json:"at_most,omitempty"` // Target is the most that the figure of an engine, Against, may be
	Got         Ratio   `json:"got"`               // Median is the figure itself where Target is 0
	// the same by processor time, of the peer that decides there; no repetitions where that is not measured
	CPU       Ratio `json:"cpu"`
	Met       bool  `json:"met"`       // by the median of Got
	Uncertain bool  `json:"uncertain"` // the interval has the target in it
}

// anyPeer and lsmPeers stand for the best of several engines in a target.
const (
	anyPeer  = "best peer"
	lsmPeers = "best LSM peer"
)

// A target asks for a ratio of a phase, or of one of its figures if that is named.
type target struct {
	of            string // the engine whose target it is; empty: siftkv
	phase, figure string
	cpu           bool   // the ratio is that by processor time
	against       string // anyPeer, lsmPeers, or an engine
	atLeast       float64
	compression   string // "" for every one
}

// targets of SiftKV, in the order of the report.
var targets = []target{
	{phase: "absent", against: anyPeer, atLeast: 3},
	{phase: "absent", against: "pebble", atLeast: 10},
	{phase: "absent-2", against: anyPeer, atLeast: 3},
	{phase: "absent-2", against: "pebble", atLeast: 10},
	{phase: "absent-behind", against: lsmPeers, atLeast: 3},
	{phase: "existing-cached", against: anyPeer, atLeast: 1.3},
	{phase: "existing-cached", against: "pebble", atLeast: 4},
	{phase: "existing-small", against: lsmPeers, atLeast: 1.5, compression: "snappy"},
	{phase: "zipf", against: lsmPeers, atLeast: 1.5},
	{phase: "load", against: lsmPeers, atLeast: 1.2},
	{phase: "load", figure: "written", against: "pebble", atLeast: 1},
	{phase: "load", figure: "space", against: "pebble", atLeast: 1 / 1.05},
	{phase: "set", against: anyPeer, atLeast: 1.2},
	{phase: "set-soon", against: anyPeer, atLeast: 1.2},
	{phase: "set-sync", against: anyPeer, atLeast: 1.2},
	{phase: "scan-full", against: lsmPeers, atLeast: 1.5},
	{phase: "scan-10", against: lsmPeers, atLeast: 1.5},
	{phase: "scan-100", against: lsmPeers, atLeast: 1.5},
	{phase: "scan-full", against: "bbolt", atLeast: 0.6, compression: "none"},
	{phase: "scan-10", against: "bbolt", atLeast: 0.6, compression: "none"},
	{phase: "scan-100", against: "bbolt", atLeast: 0.6, compression: "none"},
	{phase: "ycsb-a", against: lsmPeers, atLeast: 1},
	{phase: "ycsb-b", against: lsmPeers, atLeast: 1},
	{phase: "ycsb-c", against: lsmPeers, atLeast: 1},
	{phase: "ycsb-d", against: lsmPeers, atLeast: 1},
	{phase: "ycsb-e", against: lsmPeers, atLeast: 1},
	{phase: "ycsb-f", against: lsmPeers, atLeast: 1},
	{phase: "heavy", figure: "p99.9", against: lsmPeers, atLeast: 1},
	{phase: "heavy", figure: "stall", against: lsmPeers, atLeast: 1},
	{phase: "existing", figure: "allocs-existing"},
	{phase: "existing-small", figure: "allocs-small"},
	{phase: "absent", figure: "allocs-absent"},
	{phase: "memory", figure: "rss", against: "pebble", atLeast: 1},
	{phase: "open", figure: "open", against: "pebble", atLeast: 1},
}

// someAllocs is what the harness and the background may allocate per operation
// without it counting as an allocation of the operation.
const someAllocs = 0.01

// judge fills in the verdicts of what was measured. Only SiftKV has targets, as the engine that is
// compared with the others.
func (r *Result) judge() {
	r.Verdicts = nil
	for _, t := range slices.Concat(targets, largeTargets) {
		if r.Settings.Engines[0] != cmp.Or(t.of, "siftkv") {
			continue
		}
		for _, p := range r.Phases {
			if p.Name != t.phase || t.compression != "" && t.compression != p.Compression {
				continue
			}
			if v, ok := r.verdict(t, p); ok {
				r.Verdicts = append(r.Verdicts, v)
			}
		}
	}
	r.judgeLimits()
}

// verdict holds a phase against a target; ok is false if there is nothing to compare
// with.
func (r *Result) verdict(t target, p PhaseResult) (v Verdict, ok bool) {
	v = Verdict{Title: p.Title, Compression: p.Compression, Against: t.against, Target: t.atLeast}
	ratios, cpu := p.Ratios, p.CPURatios
	if t.figure != "" {
		at := slices.IndexFunc(r.Figures,
			func(f Figure) bool { return f.Name == t.figure && f.Compression == p.Compression })
		if at < 0 {
			return v, false
		}
		f := r.Figures[at]
		v.Title, ratios, cpu = f.Title, f.Ratios, nil
		if t.against == "" {
			v.Got = Ratio{Median: f.Engines[0].Median, Repetitions: len(f.Engines[0].Values)}
			v.Met = v.Got.Median < someAllocs
			return v, v.Got.Repetitions > 0
		}
	}
	v.Got, ok = t.least(ratios)
	v.CPU, _ = t.least(cpu)
	if t.cpu {
		v.Title += ", processor time"
		v.Got, v.CPU = v.CPU, Ratio{}
		ok = v.Got.Repetitions > 0
	}
	v.Met = v.Got.Median >= t.atLeast
	v.Uncertain = v.Got.Repetitions < 3 || v.Got.Low < t.atLeast != (v.Got.High < t.atLeast)
	return v, ok
}

// least returns the ratio over the best of the engines that a target is about; ok is
// false if there is none.
func (t target) least(ratios []Ratio) (least Ratio, ok bool) {
	for _, r := range ratios {
		if r.Repetitions > 0 && t.concerns(r.Engine) && (!ok || r.Median < least.Median) {
			least, ok = r, true
		}
	}
	return least, ok
}

// concerns reports whether an engine is one of those that a target is about.
func (t target) concerns(name string) bool {
	switch t.against {
	case anyPeer:
		return name != engine.PebbleIteratorName
	case lsmPeers:
		return engine.LogStructured(name) && name != engine.PebbleIteratorName
	}
	return name == t.against
}
