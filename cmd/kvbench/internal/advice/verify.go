package advice

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Check holds a prediction against what was counted.
type Check struct {
	Setting   advise.Prediction `json:"predicted"`
	Measured  Measured          `json:"measured"`
	Now       bool              `json:"now"`  // of the store as it is
	Best      bool              `json:"best"` // of the recommendation
	Score     float64           `json:"score_ns"`
	Blocks    float64           `json:"blocks_error"` // predicted / measured - 1
	Reads     float64           `json:"reads_error"`
	Bytes     float64           `json:"bytes_error"`
	Found     float64           `json:"found_blocks_error"`
	Absent    float64           `json:"absent_blocks_error"`
	InBounds  bool              `json:"absent_within_interval"`
	Scans     float64           `json:"scan_blocks_error"`
	ScanReads float64           `json:"scan_reads_error"`
}

// A Verdict sums checks up.
type Verdict struct {
	Checks       int     `json:"checks"`
	BlocksIn10   int     `json:"blocks_within_10_percent"`
	ReadsIn10    int     `json:"reads_within_10_percent"`
	AbsentIn10   int     `json:"absent_blocks_within_10_percent"`
	WorstBlocks  float64 `json:"worst_blocks_error"`
	WorstReads   float64 `json:"worst_reads_error"`
	InInterval   int     `json:"absent_within_interval"`
	WithInterval int     `json:"absent_with_interval"`
	// BestMeasured is the cheapest of the settings that were measured within the limit of
	// memory, by the prices of what was counted; Regret is how much more the recommended one costs.
	BestMeasured string  `json:"best_measured"`
	Regret       float64 `json:"regret"`
}

// A verification measures copies of a store.
type verification struct {
	store    *store
	asked    *asked
	model    *advise.Model
	advice   *advise.Advice
	prices   advise.Prices
	dir      string // for copies; each is removed when it was measured
	progress *progress.Reporter
}

// A group is settings that have the same files.
type group struct {
	setting advise.Setting // without a cache
	caches  []int64
}

// check measures the store as it is, and a copy for each other setting.
func (v *verification) check(ctx context.Context, groups []group) (all []Check, err error) {
	runs := 1
	for _, g := range groups {
		runs += len(g.caches)
	}
	phase := v.progress.Start("verify", runs*(len(v.asked.trace.Lookups)+len(v.asked.trace.Scans)), "lookups and scans")
	defer phase.Done()
	m, err := v.asked.measure(ctx, v.store.dir, v.store.options, v.advice.Now.Cache, v.model.Warm(), phase.Add)
	if err != nil {
		return nil, err
	}
	all = append(all, v.compare(v.advice.Now, m))
	all[0].Now = true
	for n, g := range groups {
		dir := filepath.Join(v.dir, fmt.Sprintf("copy-%d", n))
		if err := v.store.copyTo(ctx, dir, g.setting); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		for i, p := range v.model.Predict(g.setting, g.caches...) {
			m, err := v.asked.measure(ctx, dir, v.store.options, g.caches[i], v.model.Warm(), phase.Add)
			if err != nil {
				return nil, errors.Join(err, os.RemoveAll(dir))
			}
			c := v.compare(p, m)
			c.Best = p.Setting == v.advice.Recommendation.Setting.Setting
			all = append(all, c)
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// compare holds a prediction against a measurement.
func (v *verification) compare(p advise.Prediction, m Measured) Check {
	c := Check{Setting: p, Measured: m}
	c.Blocks, c.Reads, c.Bytes = off(p.All.Blocks, m.All.Blocks), off(p.All.Reads, m.All.Reads),
		off(p.All.Bytes, m.All.Bytes)
	c.Found, c.Absent = off(p.Found.Blocks, m.Found.Blocks), off(p.Absent.Blocks, m.Absent.Blocks)
	c.Scans, c.ScanReads = off(p.Scans.Blocks, m.Scans.Blocks), off(p.Scans.Reads, m.Scans.Reads)
	const rounding = 1e-9
	c.InBounds = p.Absent.Low-rounding <= m.Absent.Blocks && m.Absent.Blocks <= p.Absent.High+rounding
	seen := p
	seen.All, seen.Scans = m.All, m.Scans
	c.Score = v.prices.Score(&seen)
	return c
}

// tiny is a number of blocks of a lookup that nobody notices.
const tiny = 1e-4

// off returns by what part a prediction is off. Both nearly nothing is no error.
func off(predicted, measured float64) float64 {
	switch {
	case math.Abs(predicted-measured) < tiny:
		return 0
	case measured == 0:
		return 1
	}
	return predicted/measured - 1
}

// within is what a prediction may be off.
const within = 0.1

// verdict sums checks up.
func (v *verification) verdict(all []Check) *Verdict {
	r := &Verdict{Checks: len(all)}
	best, mine := math.Inf(1), math.Inf(1)
	for i := range all {
		c := &all[i]
		if math.Abs(c.Blocks) <= within {
			r.BlocksIn10++
		}
		if math.Abs(c.Reads) <= within {
			r.ReadsIn10++
		}
		if c.Setting.Absent.Operations > 0 {
			if r.WithInterval++; c.InBounds {
				r.InInterval++
			}
			if math.Abs(c.Absent) <= within {
				r.AbsentIn10++
			}
		}
		r.WorstBlocks = max(r.WorstBlocks, math.Abs(c.Blocks))
		r.WorstReads = max(r.WorstReads, math.Abs(c.Reads))
		if c.Best || c.Now && v.advice.Recommendation.Keep {
			mine = min(mine, c.Score)
		}
		if c.Setting.Memory <= v.advice.Memory+v.advice.Memory/1000 && c.Score < best {
			best, r.BestMeasured = c.Score, c.Setting.Name()
		}
	}
	if !math.IsInf(mine, 1) && best > 0 {
		r.Regret = mine/best - 1
	}
	return r
}
