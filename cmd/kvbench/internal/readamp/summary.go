package readamp

import (
	"math"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// compare relates every row to the baseline: Pebble's Get with its own filter,
// or with none if that was not measured.
func compare(rows []Row) []Comparison {
	var base *Row
	for _, filter := range []string{pebbleOwn, "none"} {
		at := slices.IndexFunc(rows, func(r Row) bool {
			return r.Engine == "pebble" && r.Access == engine.Get && r.Filter == filter
		})
		if at >= 0 {
			base = &rows[at]
			break
		}
	}
	if base == nil {
		return nil
	}
	var out []Comparison
	for _, kind := range engine.Kinds {
		for i := range rows {
			if &rows[i] != base && rows[i].Engine != Null {
				out = append(out, speedup(&rows[i], base, kind))
			}
		}
	}
	return out
}

// speedup compares medians, and repetition with repetition for the spread: the
// loops of one repetition ran within seconds of each other.
func speedup(row, base *Row, kind engine.Kind) Comparison {
	p, b := row.Phase(kind), base.Phase(kind)
	c := Comparison{
		Kind: kind, Row: row.Name, Baseline: base.Name, BaselineNs: b.NsPerLookup,
		Speedup: b.NsPerLookup / p.NsPerLookup,
		Low:     math.Inf(1),
	}
	for i := range min(len(p.Repetitions), len(b.Repetitions)) {
		quotient := b.Repetitions[i].NsPerLookup() / p.Repetitions[i].NsPerLookup()
		c.Low, c.High = min(c.Low, quotient), max(c.High, quotient)
	}
	return c
}
