package blockindex

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/internal/hostile"
)

// An index is a view; its guide takes up to four bytes for each entry of twenty.
var hostileBound = hostile.Bound{PerByte: 2, Fixed: 16 << 10}

func requireBounded(tb testing.TB, data []byte) {
	tb.Helper()
	hostileBound.Require(tb, len(data), func() {
		if x, err := Decode(data); err == nil {
			guided := x.Guided()
			guided.Find([]byte("common-5"))
		}
	})
}

func TestHostileIndexes(t *testing.T) {
	for _, n := range []int{0, 1, 10, 1000} {
		var b Builder
		for i := range n {
			b.Add(fmt.Appendf(nil, "common-%06d", i), uint64(100*i+50))
		}
		for mutant := range hostile.Mutants(b.Append(nil), 1000) {
			requireBounded(t, mutant)
		}
	}
}

func FuzzHostileIndex(f *testing.F) {
	var b Builder
	b.Add([]byte("common-a"), 10)
	b.Add([]byte("common-b"), 30)
	f.Add(b.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) { requireBounded(t, data) })
}
