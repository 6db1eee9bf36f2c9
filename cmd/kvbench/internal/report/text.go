// Package report renders results: tables for people, CSV and text for benchstat. Every
// number it prints is in the JSON of a result, or is computed from numbers that are: a
// median, an interval or a quotient.
package report

import (
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// identities says which equations hold, and shows those that do not.
func identities(out *Page, ids *measure.Identities) {
	verdict := "all hold"
	if n := len(ids.Failures); n > 0 {
		verdict = count(n) + " DO NOT HOLD"
	}
	out.Printf("\nIdentities: %s checked, %s (%s more need a counter that the engine does not keep)\n\n",
		count(ids.Checked), verdict, count(ids.Unknown))
	for _, rule := range ids.Rules {
		out.Printf("  %s\n", rule)
	}
	const shown = 10
	for _, f := range slices.Clip(ids.Failures)[:min(shown, len(ids.Failures))] {
		out.Printf("  BROKEN: %s\n", f)
	}
}
