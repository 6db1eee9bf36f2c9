package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/internal/hostile"
)

// The smallest value of JSON that makes a structure of some hundred bytes has two.
var hostileBound = hostile.Bound{PerByte: 1 << 10, Fixed: 64 << 10}

func requireBounded(tb testing.TB, data []byte) {
	tb.Helper()
	hostileBound.Require(tb, len(data), func() { _, _ = parse(data) })
}

func TestHostileResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	require.NoError(t, WriteJSON(path, &cell.Result{Metrics: []cell.Metric{
		{Kind: "absent", Unit: "ns/op", Samples: []float64{1, 2}}, {Kind: "absent", Unit: "blocks/op", Exact: true}}}))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = parse(data)
	require.NoError(t, err)
	for mutant := range hostile.Mutants(data, 500) {
		requireBounded(t, mutant)
	}
	for _, s := range []string{"[", "{", "[{},", "null,", `{"a":`, "[[", "1e999,"} {
		requireBounded(t, []byte(strings.Repeat(s, 5000)))
		requireBounded(t, []byte("["+strings.Repeat(s, 5000)+"null]"))
	}
	requireBounded(t, []byte(`{"schema":"kvbench.rows/v2","experiment":"cell","rows":[`+
		strings.Repeat(`{"metric":"a"},`, 5000)+`{}]}`))
}

func FuzzHostileResult(f *testing.F) {
	f.Add([]byte(`[{"schema":"x"},null]`))
	f.Fuzz(func(t *testing.T, data []byte) { requireBounded(t, data) })
}
