package conformance

import (
	"testing"
)

func BenchmarkRibbonVersusBlocked(b *testing.B) {
	Versus(b, "blocked:10", "ribbon:7", "ribbon:rate=0.01")
}
