package compare

import (
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// line is the number of words of a cache line.
const line = 8

// A run of chaseSteps loads is timed, chaseRuns times: short enough for some run to
// have the processor to itself.
const (
	chaseSteps = 1 << 14
	chaseRuns  = 64
)

// DependentLoad returns the time of a load whose address comes from the load before,
// over that many bytes of memory in random order, one load per cache line: the least
// of several runs.
func DependentLoad(bytes int64) time.Duration {
	lines := max(2, int(bytes/(8*line)))
	memory := make([]uint64, lines*line)
	order := keys.NewPermutation(lines, 1)
	for i := range lines { // one cycle through all lines
		memory[order.At(i)*line] = uint64(order.At((i+1)%lines)) * line
	}
	at := uint64(0)
	for range min(lines, 1<<20) { // brings in pages and what caches can hold
		at = memory[at]
	}
	best := time.Duration(1 << 62)
	for range chaseRuns {
		start := time.Now()
		for range chaseSteps {
			at = memory[at]
		}
		best = min(best, time.Since(start))
	}
	if at == 0 { // looks at the result, so that the loop is not removed
		best++
	}
	return best / chaseSteps
}
