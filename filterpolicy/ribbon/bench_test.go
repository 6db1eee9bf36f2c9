package ribbon_test

import (
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
)

func BenchmarkVersusBlocked(b *testing.B) {
	filtertest.Versus(b, "blocked:10", "ribbon:7", "ribbon:rate=0.01")
}
