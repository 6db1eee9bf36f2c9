package hostile

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

var sink []byte

// A failure records what Require says of its test.
type failure struct {
	testing.TB
	failed bool
}

func (f *failure) Helper() {}

func (f *failure) Fatalf(string, ...any) { f.failed = true }

func requireVerdict(t *testing.T, fails bool, n int, decode func()) {
	t.Helper()
	f := &failure{TB: t}
	Bound{PerByte: 4, Fixed: 1 << 20}.Require(f, n, decode)
	require.Equal(t, fails, f.failed)
}

func TestRequireHoldsAllocationsAgainstTheBound(t *testing.T) {
	requireVerdict(t, false, 0, func() {})
	requireVerdict(t, true, 1<<20, func() { sink = make([]byte, 6<<20) })
	requireVerdict(t, false, 1<<20, func() { sink = make([]byte, 4<<20) })
	requireVerdict(t, true, 0, func() {
		for range 100 { // what is freed at once counts as well
			sink = make([]byte, 32<<10)
		}
	})
}

// What is allocated once and kept is no part of the measurement.
func TestRequireForgivesWhatIsKept(t *testing.T) {
	var kept []byte
	requireVerdict(t, false, 0, func() {
		if kept == nil {
			kept = make([]byte, 8<<20)
		}
	})
}

func TestMutantsAreTheSameEachTimeAndAllDiffer(t *testing.T) {
	data := bytes.Repeat([]byte("data"), 100)
	first := slices.Collect(Mutants(data, 500))
	require.Equal(t, first, slices.Collect(Mutants(data, 500)))
	require.Len(t, first, 2*ends*len(extremes)/scale.Stride(2, 1)+scale.Count(100, 500))
	same := 0
	for _, m := range first {
		if bytes.Equal(m, data) {
			same++
		}
	}
	require.Less(t, same, 10)
	require.Equal(t, bytes.Repeat([]byte("data"), 100), data)
	require.Empty(t, slices.Collect(Mutants(nil, 0)))
	for range Mutants(data, 1) {
		break
	}
}
