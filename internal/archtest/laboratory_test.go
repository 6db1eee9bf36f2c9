package archtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// laboratoryModule is the directory of the module that measures stores.
const laboratoryModule = "cmd/kvbench"

// laboratory is the packages under cmd/kvbench/internal in layers, from the bottom up.
var laboratory = [][]string{
	{"bench"},                         // errors, counts and sizes
	{"environ", "keys"},               // the machine; what is there and what is asked for
	{"engine/rocksdb", "engine/lmdb"}, // bindings
	{"engine"},                        // stores under one interface
	{"measure"},                       // loads, lookups, statistics
	{"tidy"},                          // a result as rows
	{"cell"},                          // an experiment
	{"filters", "ranges", "traceinfo", "objects"}, // of filters and stores by themselves
	{"compare"},                  // experiments of experiments
	{"results", "cell/celltest"}, // results in files, and made-up ones
	{"sweep"},                    // matrices of cells
	{"readamp"},                  // two of them
	{"report"},                   // results for a reader
	{"report/chart"},             // and as pictures
}

// TestTheLaboratoryImportsDown holds every package of the laboratory to its layer: it imports
// those of layers below its own.
func TestTheLaboratoryImportsDown(t *testing.T) {
	const root = laboratoryModule + "/internal/"
	layer := func(pkg string) int {
		name := strings.TrimPrefix(pkg, root)
		at := slices.IndexFunc(laboratory, func(names []string) bool { return slices.Contains(names, name) })
		require.GreaterOrEqual(t, at, 0, "%s has no layer: give it one", pkg)
		return at
	}
	checked := 0
	for pkg, imports := range importsOf(t, root) {
		for _, to := range imports {
			if to, ok := strings.CutPrefix(to, module); ok && strings.HasPrefix(to, root) {
				checked++
				require.Less(t, layer(to), layer(pkg), "%s imports %s: imports point down only", pkg, to)
			}
		}
	}
	require.Greater(t, checked, 40, "the walk found the packages")
}
