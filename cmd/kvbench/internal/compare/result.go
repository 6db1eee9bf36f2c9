package compare

import (
	"math"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// Schema names the JSON form of a Result.
const Schema = "kvbench.compare/v1"

// A Result is everything a run has found out.
type Result struct {
	Schema      string              `json:"schema"`
	Environment environ.Environment `json:"environment"`
	Settings    Settings            `json:"settings"`
	Loads       []Load              `json:"loads"`
	Phases      []PhaseResult       `json:"phases"`
	Figures     []Figure            `json:"figures"`
	Warnings    []string            `json:"warnings"`
	WallSeconds float64             `json:"wall_seconds"`
}

// A Load is one load of one store.
type Load struct {
	Engine        string  `json:"engine"`
	Compression   string  `json:"compression"`
	LoadSeconds   float64 `json:"load_seconds"`   // until the last batch was accepted
	SettleSeconds float64 `json:"settle_seconds"` // from then on, without the lookups in between
	CPUSeconds    float64 `json:"cpu_seconds"`    // of both
	WrittenBytes  int64   `json:"written_bytes"`  // by both
	DiskBytes     int64   `json:"disk_bytes"`     // when settled and opened again
	Files         int     `json:"files"`
}

// Seconds returns the time to settled.
func (l Load) Seconds() float64 { return l.LoadSeconds + l.SettleSeconds }

// A PhaseResult is one phase with one compression.
type PhaseResult struct {
	Phase
	Compression string   `json:"compression"`
	Engines     []Series `json:"engines"`    // in the order of Settings.Engines
	Ratios      []Ratio  `json:"ratios"`     // of operations per second, of the first engine over each other
	CPURatios   []Ratio  `json:"cpu_ratios"` // of operations per second of processor time; empty with several threads
}

// A Series is what one engine did in one phase.
type Series struct {
	Engine    string   `json:"engine"`
	PerSecond float64  `json:"per_second"`     // median
	PerCPU    float64  `json:"per_cpu_second"` // median of operations per second of processor time; 0 if not measured
	Samples   []Sample `json:"samples"`        // by repetition
}

// A Ratio compares operations per second, repetition by repetition.
type Ratio struct {
	Engine      string  `json:"over"`
	Median      float64 `json:"median"`
	Low         float64 `json:"low"`
	High        float64 `json:"high"`
	Repetitions int     `json:"repetitions"` // 0: nothing to compare
}

// finish computes medians and ratios.
func (p *PhaseResult) finish() {
	for i := range p.Engines {
		s := &p.Engines[i]
		s.PerSecond = middle(s.rates(wallRate))
		s.PerCPU = middle(s.rates(cpuRate))
	}
	p.Ratios, p.CPURatios = nil, nil
	for _, peer := range p.Engines[1:] {
		p.Ratios = append(p.Ratios, ratioOf(peer.Engine, p.Engines[0].rates(wallRate), peer.rates(wallRate)))
		p.CPURatios = append(p.CPURatios, ratioOf(peer.Engine, p.Engines[0].rates(cpuRate), peer.rates(cpuRate)))
	}
}

// wallRate returns the operations per second of a sample.
func wallRate(s Sample) float64 { return s.PerSecond }

// cpuRate returns the operations per second of processor time, 0 if that was not
// measured.
func cpuRate(s Sample) float64 {
	if s.CPUSeconds <= 0 {
		return 0
	}
	return float64(s.Operations) / s.CPUSeconds
}

// middle is the median, 0 of none.
func middle(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	return measure.Median(xs)
}

func (s *Series) rates(rate func(Sample) float64) []float64 {
	rates := make([]float64, len(s.Samples))
	for i, sample := range s.Samples {
		rates[i] = rate(sample)
	}
	return rates
}

// ratioOf compares repetition with repetition, which were taken within seconds of each
// other; zeros compare with nothing.
func ratioOf(peer string, a, b []float64) Ratio {
	r := Ratio{Engine: peer}
	var quotients []float64
	for i := range min(len(a), len(b)) {
		if a[i] > 0 && b[i] > 0 {
			quotients = append(quotients, a[i]/b[i])
		}
	}
	if r.Repetitions = len(quotients); r.Repetitions > 0 {
		r.Median, r.Low, r.High = medianInterval(quotients)
	}
	return r
}

// medianInterval returns the median of xs and the narrowest pair of order
// statistics, at the same distance from both ends, that holds the true median with a
// probability of at least 90 %; with less than five values, their range. There is at
// least one.
func medianInterval(xs []float64) (median, low, high float64) {
	n := len(xs)
	sorted := slices.Sorted(slices.Values(xs))
	// The median lies outside of the k-th values from both ends with the probability
	// of fewer than k heads in n throws, twice.
	k, outside, term := 0, 0.0, math.Pow(0.5, float64(n))
	for j := 0; 2*j < n; j++ {
		outside += 2 * term
		if outside > 0.1 {
			break
		}
		k = j
		term *= float64(n-j) / float64(j+1)
	}
	return measure.Median(xs), sorted[k], sorted[n-1-k]
}
