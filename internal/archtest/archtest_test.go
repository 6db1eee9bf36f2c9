package archtest

import (
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/siftkv/siftkv/"

// layers are the packages from the bottom up. A package may import those of
// layers below its own, and its own sub-packages' siblings only where the layer
// says so. Longer prefixes win.
var layers = []struct {
	prefix string
	layer  int
}{
	{"internal/base", 0},
	{"internal/bytesize", 0},
	{"internal/callback", 0},
	{"internal/vfs", 0},
	{"internal/vfs/vfstest", 3},
	{"internal/golden", 0},
	{"internal/hostile", 2},
	{"internal/keytext", 0},
	{"internal/keyformat", 1},
	{"internal/offheap", 0},
	{"internal/racebuild", 0},
	{"internal/property", 2},
	{"internal/scale", 1},
	{"internal/turns", 0},
	{"internal/requests", 0},
	{"objstore", 1},
	{"internal/cli/progress", 0},
	{"internal/cli/outfile", 1},
	{"internal/compression", 1},
	{"internal/rangedel", 1},
	{"internal/cache", 1},
	{"internal/falsepositives", 1},
	{"internal/operand", 1},
	{"internal/compaction", 6},
	{"internal/fieldtext", 1},
	{"internal/replay", 7},
	{"internal/filterbudget", 6},
	{"internal/budget", 5},
	{"internal/handles", 0},
	{"internal/harness", 7},
	{"internal/wal", 1},
	{"internal/lookuptrace", 1},
	{"internal/lookupsample", 2},
	{"internal/lookupwatch", 3},
	{"filterpolicy", 1},
	{"internal/diskcache", 1},
	{"internal/exactranges", 2},
	{"internal/blob", 2},
	{"internal/manifest", 2},
	{"blockindex", 2},
	{"internal/readset", 2},
	{"internal/nextlog", 5},
	{"internal/sequence", 3},
	{"internal/sstable", 3},
	{"internal/batchrepr", 3},
	{"sstable", 4},
	{"internal/backup", 4},
	{"kv/explain", 4},
	{"kv/lookuptrace", 2},
	{"kv/metrics", 3},
	{"kv/lookuptrace/record", 4},
	{"internal/objectdir", 4},
	{"internal/counters", 4},
	{"internal/memtable", 4},
	{"internal/tablemeta", 4},
	{"internal/tablecache", 4},
	{"internal/version", 5},
	{"internal/advise", 5},
	{"internal/ingest", 5},
	{"internal/iterator", 6},
	{"internal/commit", 5},
	{"internal/changelog", 5},
	{"internal/changefeed", 6},
	{"internal/survey", 7},
	{"internal/survey/shape", 8},
	{"internal/values", 6},
	{"internal/cursor", 7},
	{"internal/job", 7},
	{"internal/conflict", 7},
	{"internal/diskspace", 7},
	{"internal/storeview", 7},
	{"internal/multiget", 7},
	{"kv", 8},
	{"internal/remote", 8}, // package kv must not link it: see TestEmbeddersPayForLittle
	{"kv/objects", 9},
	{"kv/advice", 9},
	{"cmd/kvbench/internal", 10},
	{"internal/gatewaytest", 2},
	{"internal/doctor", 9},
	{"internal/cli", 9},
	{"internal/stress", 10},
	{"internal/storetest", 8},
	{"internal/storetest/stores", 10},
	{"internal/storetest/values", 11},
	{"internal/storetest/backups", 11},
	{"internal/storetest/branches", 11},
	{"internal/storetest/damage", 11},
	{"internal/storetest/directories", 11},
	{"internal/storetest/kills", 11},
	{"internal/storetest/followers", 11},
	{"internal/storetest/formats", 11},
	{"internal/storetest/models", 11},
	{"internal/storetest/powercuts", 11},
	{"internal/storetest/processes", 11},
	{"internal/storetest/faults", 11},
	{"internal/storetest/objects", 11},
	{"internal/storetest/linear", 10},
	{"internal/storecmd", 10},
	{"cmd", 11},
	{"examples", 11},
	{"internal/archtest", 12},
}

func layerOf(t *testing.T, pkg string) int {
	t.Helper()
	best := -1
	for i, l := range layers {
		if pkg == l.prefix || strings.HasPrefix(pkg, l.prefix+"/") {
			if best < 0 || len(l.prefix) > len(layers[best].prefix) {
				best = i
			}
		}
	}
	require.GreaterOrEqual(t, best, 0, "package %s has no layer: give it one", pkg)
	return layers[best].layer
}

// family is the top of the tree that a package belongs to: packages of one family
// may import each other.
func family(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

func TestImportsPointDown(t *testing.T) {
	checked := 0
	for from, imports := range importsOf(t, "") {
		for _, imported := range imports {
			to, ok := strings.CutPrefix(imported, module)
			if !ok || family(from) == family(to) {
				continue
			}
			checked++
			if layerOf(t, to) >= layerOf(t, from) {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports point down only", from, layerOf(t, from), to,
					layerOf(t, to))
			}
		}
	}
	require.Greater(t, checked, 20, "the walk found the packages")
}

// importsOf returns, for each directory below dir with a package of the root module or of the laboratory's, what it
// imports, not counting tests. It reads files for every platform and with every tag.
func importsOf(t *testing.T, dir string) map[string][]string {
	t.Helper()
	others := slices.DeleteFunc(nestedModules(t), func(module string) bool { return module == laboratoryModule })
	imports := map[string][]string{}
	walkSources(t, func(path string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, dir) ||
			moduleIn(others, path) != "" {
			return
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		imports[pkg] = append(imports[pkg], importsIn(t, path)...)
	})
	return imports
}

// importsIn returns the paths that a file imports.
func importsIn(t *testing.T, path string) (paths []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.ImportsOnly)
	require.NoError(t, err)
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		paths = append(paths, imported)
	}
	return paths
}

// TestEmbeddersPayForLittle keeps what the store links short: a benchmark peer or
// a test library among its dependencies would be in every program that embeds it.
func TestEmbeddersPayForLittle(t *testing.T) {
	deps := goList(t, "-deps", "./kv", "./sstable", "./blockindex", "./filterpolicy")
	allowed := []string{"github.com/siftkv/siftkv", "github.com/cespare/xxhash", "github.com/klauspost/compress",
		"golang.org/x/sys"}
	for _, dep := range deps {
		first, _, _ := strings.Cut(dep, "/")
		if !strings.Contains(first, ".") {
			continue // the standard library
		}
		if !slices.ContainsFunc(allowed, func(a string) bool { return strings.HasPrefix(dep, a) }) {
			t.Errorf("the store links %s", dep)
		}
	}
	require.Contains(t, deps, "github.com/cespare/xxhash/v2", "the list is real")
	for _, dep := range goList(t, "-deps", "./kv") {
		for _, only := range []string{"kv/objects", "objstore", "internal/remote", "internal/sequence",
			"internal/diskcache"} {
			if dep == module+only || strings.HasPrefix(dep, module+only+"/") {
				t.Errorf("the store links %s: only kv/objects does", dep)
			}
		}
	}
}

// TestToolsDoWithoutTheLaboratory keeps what measures stores out of the program that
// looks after them.
func TestToolsDoWithoutTheLaboratory(t *testing.T) {
	deps := goList(t, "-deps", "./cmd/siftkv")
	for _, dep := range deps {
		if strings.HasPrefix(dep, module+"cmd/kvbench") {
			t.Errorf("cmd/siftkv links %s", dep)
		}
	}
	require.Contains(t, deps, module+"kv", "the list is real")
}

// TestPeersStayInOnePlace keeps the stores that SiftKV is compared with behind one interface.
func TestPeersStayInOnePlace(t *testing.T) {
	const home = "cmd/kvbench/internal/engine"
	found := 0
	for from, imports := range importsOf(t, "") {
		for _, imported := range imports {
			for _, peer := range []string{"github.com/dgraph-io/badger", "github.com/syndtr/goleveldb",
				"go.etcd.io/bbolt"} {
				if imported != peer && !strings.HasPrefix(imported, peer+"/") {
					continue
				}
				found++
				if from != home {
					t.Errorf("%s imports %s: only %s does", from, imported, home)
				}
			}
		}
	}
	require.Positive(t, found, "the walk found the peers")
}
