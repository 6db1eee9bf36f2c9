package cell

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// Schema names the form of a Result in JSON. It changes when a field changes its
// meaning or goes away.
const Schema = "kvbench.cell/v1"

// A Result is everything that a cell found out. Its JSON form is the file that a sweep
// writes; docs/bench.md describes it.
type Result struct {
	Schema      string              `json:"schema"`
	Name        string              `json:"name"`
	Settings    Settings            `json:"settings"`
	Environment environ.Environment `json:"environment"`
	Keys        keys.Description    `json:"keys"`
	Build       Build               `json:"build"`
	Shape       engine.Shape        `json:"shape"`
	BitsPerKey  float64             `json:"bits_per_key"`   // of filter, on disk
	Theory      *measure.Theory     `json:"theory"`         // null without a filter, and if nothing is known
	Levels      []measure.LevelRate `json:"level_rates"`    // empty if the engine does not count by level
	Sum         *measure.Sum        `json:"rate_sum"`       // of the measured rates of all runs; null with Levels
	Predicted   float64             `json:"rate_predicted"` // sum of the predicted ones
	Usage       engine.Usage        `json:"usage"`          // of the store that answered, after the lookups
	Existing    Phase               `json:"existing"`
	Absent      Phase               `json:"absent"`
	Scans       *Scans              `json:"scans,omitempty"`
	Pace        *Pace               `json:"pace,omitempty"` // of a trace that was replayed with its intervals
	Metrics     []Metric            `json:"metrics"`
	Identities  measure.Identities  `json:"identities"`
	PageCache   measure.PageCache   `json:"page_cache"`
	TimerNs     int64               `json:"timer_ns"` // one reading of the clock, part of every percentile
	WallSeconds float64             `json:"wall_seconds"`
	Notes       []string            `json:"notes"`
	Warnings    []string            `json:"warnings"`
}

// Loading says how a store is loaded, which results of equal settings may differ in.
type Loading struct {
	Compactions  int `json:"compactions"` // at a time
	BatchKeys    int `json:"batch_keys"`  // of a write batch
	SpacePercent int `json:"siftkv_space_percent,omitempty"`
}

// A Build says how the store came to be.
type Build struct {
	Loading
	Reused        bool         `json:"reused"` // built for the cell before, which has the same files
	Tree          engine.Tree  `json:"tree"`
	Rewritten     int          `json:"rewritten"` // writes of keys that were there
	LoadSeconds   float64      `json:"load_seconds"`
	SettleSeconds float64      `json:"settle_seconds"`
	Usage         engine.Usage `json:"usage"`
	UserBytes     int64        `json:"user_bytes"` // of keys and values written
	// WrittenBytes is what the process gave to the kernel to write meanwhile: logs, tables and
	// blob files; DiskBytes is what all files of the store take then. 0 where it is not measured.
	WrittenBytes int64 `json:"written_bytes,omitempty"`
	DiskBytes    int64 `json:"disk_bytes,omitempty"`
	LiveBytes    int64 `json:"live_bytes"` // of the keys and values that are there
	Settled      bool  `json:"settled"`

	// Timeline shows the writes, and what the store did in the background meanwhile;
	// null for null.
	Timeline *measure.Timeline `json:"timeline"`
}

// A Phase is what lookups of one kind did.
type Phase struct {
	measure.Phase
	// of a paced replay: from when each lookup began, and not from when it was due
	Service  *measure.Percentiles `json:"service,omitempty"`
	Spectrum []Quantile           `json:"spectrum"`
	// the histogram of single lookups in nanoseconds: HdrHistogram V2, compressed, base64
	HDR string `json:"hdr"`
}

// A Quantile is a point of the distribution of latencies.
type Quantile struct {
	Percentile float64 `json:"p"`
	Nanos      int64   `json:"ns"`
}

// Phase returns what lookups of a kind did.
func (r *Result) Phase(kind engine.Kind) *Phase {
	if kind == engine.Existing {
		return &r.Existing
	}
	return &r.Absent
}

// A Metric is a number of a cell that can be held against that of another.
type Metric struct {
	Kind    string    `json:"kind"`              // existing, absent, or store
	Unit    string    `json:"unit"`              // such as ns/op
	Value   float64   `json:"value"`             // of samples, the median
	Exact   bool      `json:"exact"`             // a count, which the same settings give again
	Better  string    `json:"better"`            // lower, higher, or empty
	Samples []float64 `json:"samples,omitempty"` // by repetition, if not exact
}

// Name returns the metric's name, unique in a cell.
func (m *Metric) Name() string { return m.Kind + " " + m.Unit }

// Metric returns a metric by kind and unit, nil if the cell has none.
func (r *Result) Metric(kind, unit string) *Metric {
	for i := range r.Metrics {
		if r.Metrics[i].Kind == kind && r.Metrics[i].Unit == unit {
			return &r.Metrics[i]
		}
	}
	return nil
}
