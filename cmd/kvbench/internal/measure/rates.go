package measure

import (
	"math"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/filterpolicy"
)

// A LevelRate sets the prediction for one level's filters against what they did.
type LevelRate struct {
	Level int `json:"level"`
	// sorted runs, of each of which a lookup may have to ask a file; in level 0 each flush is one
	Runs       int     `json:"runs"`
	Keys       int64   `json:"keys"`
	BitsPerKey float64 `json:"bits_per_key"`
	Predicted  float64 `json:"predicted"` // rate of one probe, the mean over the runs
	Measured   *Rate   `json:"measured"`  // likewise, over all probes; null if no lookup came to the level
}

// A Sum is a sum of false-positive rates over the runs of a tree: the files that an
// absent key leads to in vain, if it lies within the bounds of every run. It is not
// a probability, and may exceed 1.
type Sum struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"` // 95 % interval
	High  float64 `json:"high"`
}

// LevelRates sets prediction against measurement for every level of a shape. The
// counters are those of lookups of absent keys, of which the part that is distinct tells
// something new: see Summarise. The policy is that of every file, or with a budget
// (spread) says the family. Runs of one level may have filters of different bits, and a
// lookup asks each: their rates are predicted one by one, since a rate is no linear
// function of the bits, and what is measured of all probes together is their mean, as
// each run is asked about as often as the next.
func LevelRates(shape engine.Shape, c engine.Counters, distinct float64, policy filterpolicy.Policy,
	spread bool) []LevelRate {
	predict := namedRate
	if spread {
		predict = fittedRate
	}
	var levels []LevelRate
	for _, l := range shape.Levels {
		level := LevelRate{Level: l.Level, Runs: l.Runs, Keys: l.Entries, BitsPerKey: l.BitsPerKey()}
		runs := shape.RunsOf(l)
		for _, run := range runs {
			level.Predicted += predict(policy, run) / float64(len(runs))
		}
		if l.Level < len(c.Levels) {
			level.Measured = passRate(c.Levels[l.Level], distinct)
		}
		levels = append(levels, level)
	}
	return levels
}

// namedRate returns what theory says of a level's filters if each has the bits that
// the policy names. Without filters it is 1.
func namedRate(policy filterpolicy.Policy, l engine.LevelShape) float64 {
	if l.FilterBytes == 0 || l.Files == 0 {
		return 1
	}
	return filterpolicy.Expected(policy, int(l.Entries)/l.Files).FPR
}

// fittedRate returns what theory says of a level's filters from their family and the
// bits that they take. It is good for a family whose bits can be chosen freely, such
// as bloom, and coarse for one that has whole bits only. Without filters it is 1.
func fittedRate(family filterpolicy.Policy, l engine.LevelShape) float64 {
	if l.FilterBytes == 0 || l.Files == 0 {
		return 1
	}
	// A policy is named for the bits that its filters of many keys take. Those of few
	// keys take more (a footer, rounding): go from the bits taken to the bits named.
	want, bits := l.BitsPerKey(), l.BitsPerKey()
	rate, nearest := 1.0, math.Inf(1)
	for range 8 {
		p, ok := filterpolicy.WithBits(family, bits)
		if !ok {
			break
		}
		e := filterpolicy.Expected(p, int(l.Entries)/l.Files)
		over := e.BitsPerKey - want
		if math.Abs(over) < nearest {
			nearest, rate = math.Abs(over), e.FPR
		}
		bits -= over
	}
	return rate
}

// passRate returns the share of probes for absent keys that no filter stopped: false positives,
// remembered or not, and probes of files without a filter. It is nil if there were no
// probes. The interval is that of the part of the probes that is distinct.
func passRate(t engine.Tally, distinct float64) *Rate {
	trials := t.FilterChecks.Plus(t.Unfiltered)
	passed := t.IndexLookups.Plus(t.Remembered)
	if trials <= 0 || !passed.Known() {
		return nil
	}
	return newRate(passed, trials, distinct)
}

// SumRates adds up the rates of all runs. The interval of the measured sum is made
// of those of the levels: each end is as far from the sum as the root of the
// squared distances of theirs (G. Y. Zou and A. Donner, "Construction of confidence
// limits about effect measures: a general approach", Statistics in Medicine 27,
// 2008), which keeps the skew of rare events.
func SumRates(levels []LevelRate) (predicted float64, measured Sum) {
	below, above := 0.0, 0.0
	for _, l := range levels {
		runs := float64(l.Runs)
		predicted += runs * l.Predicted
		if l.Measured == nil {
			continue
		}
		measured.Value += runs * l.Measured.Value
		below = math.Hypot(below, runs*(l.Measured.Value-l.Measured.Low))
		above = math.Hypot(above, runs*(l.Measured.High-l.Measured.Value))
	}
	measured.Low, measured.High = measured.Value-below, measured.Value+above
	return predicted, measured
}
