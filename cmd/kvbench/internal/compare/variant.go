package compare

import (
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/filterpolicy"
)

// UsualVariant is SiftKV with its defaults.
const UsualVariant = "default"

// A variant is SiftKV with other settings than its defaults, by words joined with "+":
// UsualVariant, a filter ("ribbon:10"), "budget:BITS" (a filter budget of that many bits
// per key), "index:SIZE" (indexes larger than that are cut into leaves, which are read on
// demand).
type variant struct {
	name       string
	filter     string
	budgetBits float64
	index      int64
}

// parseVariant reads what was given as --variant.
func parseVariant(name string) (variant, error) {
	v := variant{name: name}
	for word := range strings.SplitSeq(name, "+") {
		kind, value, _ := strings.Cut(word, ":")
		var err error
		switch kind {
		case UsualVariant:
		case "budget":
			v.budgetBits, err = strconv.ParseFloat(value, 64)
			if err == nil && !(v.budgetBits > 0 && v.budgetBits < 100) {
				err = bench.Usagef("want more than 0 bits per key, and less than 100")
			}
		case "index":
			var size bench.Size
			size, err = bench.ParseSize(value)
			v.index = int64(size)
		default:
			_, err = filterpolicy.Parse(word)
			v.filter = word
		}
		if err != nil {
			return v, bench.Usagef("--variant %s: %s: %w; want %s, a filter such as ribbon:10, budget:BITS, "+
				"index:SIZE, or several of them joined with +", name, word, err, UsualVariant)
		}
	}
	return v, nil
}

// apply returns the settings of a store of n keys.
func (v variant) apply(s engine.Settings, n int) engine.Settings {
	s.SiftKVFilter, s.SiftKVFilterBudget = v.filter, int64(v.budgetBits*float64(n)/8)
	if v.index > 0 {
		s.SiftKVIndexBytes = int(v.index)
	}
	return s
}
