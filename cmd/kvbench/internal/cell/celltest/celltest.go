// Package celltest has made-up results for the tests of what shows results.
package celltest

import (
	_ "embed"
	"encoding/json"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
)

//go:embed samples.json
var samples []byte

// Samples returns made-up results. Their counters keep every identity, and they never change:
// a test of package cell says how they come about.
func Samples() []*cell.Result {
	var set []*cell.Result
	if err := json.Unmarshal(samples, &set); err != nil {
		panic(err)
	}
	return set
}
