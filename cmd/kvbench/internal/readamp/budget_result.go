package readamp

import (
	"fmt"
	"math"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// A Budget compares two stores of the same keys whose filters take the same
// memory: in one every key has the same bits, in the other kv.Options.FilterBudget
// spreads them over the levels.
type Budget struct {
	Filter    string      `json:"filter"`    // of the uniform store; its family is that of both
	Keys      int         `json:"keys"`      // distinct keys loaded
	Rewritten int         `json:"rewritten"` // writes of keys that were there, which fill the upper levels
	Lookups   int         `json:"lookups"`   // of distinct absent keys, in each store
	Uniform   BudgetStore `json:"uniform"`
	Spread    BudgetStore `json:"spread"`
	Memory    float64     `json:"memory"`         // filter bytes of Spread over those of Uniform
	Predicted float64     `json:"predicted_gain"` // sum of rates of Uniform over that of Spread
	Measured  float64     `json:"measured_gain"`
	Blocks    float64     `json:"blocks_gain"` // blocks per lookup of Uniform over those of Spread
}

// A BudgetStore is one of the two stores.
type BudgetStore struct {
	Name            string              `json:"name"`
	Tree            engine.Tree         `json:"tree"`
	LoadSeconds     float64             `json:"load_seconds"` // rewriting and compactions included
	Shape           engine.Shape        `json:"shape"`
	Levels          []measure.LevelRate `json:"levels"` // non-empty ones, youngest first
	PredictedSum    float64             `json:"predicted_sum"`
	MeasuredSum     measure.Sum         `json:"measured_sum"`
	BlocksPerLookup float64             `json:"blocks_per_lookup"`
	NsPerLookup     float64             `json:"ns_per_lookup"`
	Counters        engine.Counters     `json:"counters"`
}

// equalMemory is how far the memory of two stores may differ to be called equal.
const equalMemory = 0.02

// warnings says what makes the comparison less trustworthy.
func (b *Budget) warnings() []string {
	if math.Abs(b.Memory-1) <= equalMemory {
		return nil
	}
	return []string{fmt.Sprintf(
		"filter budget: the filters take %+.1f %% against uniform bits, which is not equal memory: "+
			"footers and rounding weigh in filters of few keys, and the budget does not count them",
		100*(b.Memory-1))}
}
