package readamp

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// Schema names the form of a Result in JSON. It changes when a field changes
// its meaning or goes away.
const Schema = "kvbench.readamp/v1"

// A Result is everything a run found out. Its JSON form is the file that --json
// writes; docs/bench.md describes it.
type Result struct {
	Schema      string              `json:"schema"`
	Environment environ.Environment `json:"environment"`
	Settings    Settings            `json:"settings"`
	Keys        keys.Description    `json:"keys"`
	Stores      []StoreResult       `json:"stores"`
	Rows        []Row               `json:"rows"`
	Comparisons []Comparison        `json:"comparisons"`
	Budget      *Budget             `json:"budget"` // null if it was left out
	Identities  measure.Identities  `json:"identities"`
	TimerNs     int64               `json:"timer_ns"` // one reading of the clock, part of every percentile
	WallSeconds float64             `json:"wall_seconds"`
	Notes       []string            `json:"notes"`    // how to read the numbers
	Warnings    []string            `json:"warnings"` // what makes this run less trustworthy
}

// A StoreResult says how a store was built and what it looks like.
type StoreResult struct {
	Name          string       `json:"name"`
	Engine        string       `json:"engine"`
	Filter        string       `json:"filter"`
	LoadSeconds   float64      `json:"load_seconds"`
	SettleSeconds float64      `json:"settle_seconds"`
	Settled       bool         `json:"settled"` // everything in one level of files that do not overlap
	Shape         engine.Shape `json:"shape"`
}

// store returns a store by name, nil if there is none.
func (r *Result) store(name string) *StoreResult {
	for i := range r.Stores {
		if r.Stores[i].Name == name {
			return &r.Stores[i]
		}
	}
	return nil
}

// A Row is one engine with one filter, looked up one way.
type Row struct {
	Name       string          `json:"name"`
	Engine     string          `json:"engine"`
	Filter     string          `json:"filter"`
	Access     engine.Access   `json:"access"`
	Store      string          `json:"store"`        // name of its StoreResult
	BitsPerKey float64         `json:"bits_per_key"` // of filter, on disk
	Theory     *measure.Theory `json:"theory"`       // null without a filter
	Existing   measure.Phase   `json:"existing"`
	Absent     measure.Phase   `json:"absent"`
}

// Phase returns what lookups of a kind did.
func (r *Row) Phase(kind engine.Kind) *measure.Phase {
	if kind == engine.Existing {
		return &r.Existing
	}
	return &r.Absent
}

// A Comparison is a row's speed as a multiple of a baseline's.
type Comparison struct {
	Kind       engine.Kind `json:"kind"`
	Row        string      `json:"row"`
	Baseline   string      `json:"baseline"`
	BaselineNs float64     `json:"baseline_ns"`
	Speedup    float64     `json:"speedup"` // baseline's median over the row's
	Low        float64     `json:"low"`     // least and greatest quotient within one repetition
	High       float64     `json:"high"`
}
