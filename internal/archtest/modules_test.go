package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nestedModules returns the directories below the root that have a go.mod of their own. `./...` leaves them out.
func nestedModules(t *testing.T) (dirs []string) {
	t.Helper()
	walkSources(t, func(path string) {
		if dir, file := filepath.Split(path); file == "go.mod" && dir != "" {
			dirs = append(dirs, filepath.ToSlash(filepath.Clean(dir)))
		}
	})
	return dirs
}

// walkSources calls f with the path, from the root, of each file that is not in a hidden directory.
func walkSources(t *testing.T, f func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != ".":
			return fs.SkipDir
		case !e.IsDir():
			f(path)
		}
		return nil
	})
	require.NoError(t, err)
}

// moduleIn returns the module of modules, all of which are directories, that a path is in; "" if it is in none.
func moduleIn(modules []string, path string) string {
	i := slices.IndexFunc(modules, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
	if i < 0 {
		return ""
	}
	return modules[i]
}

// programs are the root's packages that its programs are made of, in addition to a main function. A program of a
// nested module is one of them with what that module has: nothing imports it, and its go.mod names the root's version.
var programs = []string{"internal/storecmd"}

// testSupport are the root's packages that tests of other modules may import: support for tests that nobody
// outside needs, and the file system that they give a store for its disk.
var testSupport = []string{"internal/gatewaytest", "internal/golden", "internal/cli/clitest", "internal/harness",
	"internal/lookuptrace/tracetest", "internal/property", "internal/scale", "internal/storecmd/followtest",
	"internal/turns", "internal/vfs"}

// face is what all programs have in common: how their command lines are read, what they print. A program of the tree
// that is a module of its own has it too.
var face = []string{"internal/cli", "internal/cli/progress"}

// TestModulesMeetInPublic keeps nested modules to what other modules can import of the root too. The compiler lets them
// import its internal packages, as their paths begin like the root's, but an importer may combine a module with a root
// of another version. Tests share packages for tests, which no importer's build sees. The laboratory is a program that
// looks into stores: nothing imports it, and its go.mod names the root that it is built with. The root imports nothing
// of other modules, so that its go.mod, which every embedder inherits, stays as short as it is.
func TestModulesMeetInPublic(t *testing.T) {
	nested := nestedModules(t)
	require.Subset(t, nested, []string{"redisfilter", "objstore/s3", "adapters/bleve", "cmd/siftimport"},
		"the list is real")
	fromNested := 0
	walkSources(t, func(path string) {
		if filepath.Ext(path) != ".go" {
			return
		}
		for _, imported := range importsIn(t, path) {
			dir, ours := strings.CutPrefix(imported, module)
			from, to := moduleIn(nested, path), moduleIn(nested, dir)
			switch {
			case !ours || from == to:
				continue
			case from == "":
				t.Errorf("%s imports %s: the root depends on no other module of the tree", path, imported)
			case from == laboratoryModule:
			case strings.HasSuffix(path, "_test.go") && slices.Contains(testSupport, dir):
			case strings.Contains(path, "/cmd/") && slices.Contains(programs, dir):
			case strings.HasPrefix(path, "cmd/") && slices.Contains(face, dir):
			case isInternal(dir):
				t.Errorf("%s imports %s: modules share what is public", path, imported)
			}
			fromNested++
		}
	})
	require.Positive(t, fromNested, "the walk found the modules' imports")
}

// required are the modules that the root's go.mod may require, tests included. `go get` of the store raises what a
// program has to these versions, and adds all of them to its module graph.
var required = []string{"github.com/alecthomas/kong", "github.com/anishathalye/porcupine",
	"github.com/cespare/xxhash/v2", "github.com/klauspost/compress", "github.com/stretchr/testify",
	"go.yaml.in/yaml/v3", "golang.org/x/sys", "pgregory.net/rapid"}

func TestTheRootRequiresLittle(t *testing.T) {
	data, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	found := 0
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") {
			continue
		}
		found++
		require.Contains(t, required, fields[0], "the root requires it")
	}
	require.Len(t, required, found)
}

// TestModulesWithProgramsCanBeInstalled holds modules of `go install PATH@VERSION` to what Go asks of them.
func TestModulesWithProgramsCanBeInstalled(t *testing.T) {
	for _, dir := range []string{".", "cmd/kvbench", "cmd/siftimport", "examples/guard", "objstore/s3"} {
		data, err := os.ReadFile(filepath.Join("../..", dir, "go.mod"))
		require.NoError(t, err)
		require.NotContains(t, string(data), "replace", dir)
	}
}

// testedWith is what the README of a module for another program says of that program's version.
var testedWith = regexp.MustCompile("Tested with `(\\S+) (v\\S+)`")

// TestModulesHaveReadmeAndLicense holds each module that can be got or installed to a README with the line that does it
// and to the root's license. An adapter, or a filter for another store, says which version of its host it is tested
// with, which is the one that its go.mod requires.
func TestModulesHaveReadmeAndLicense(t *testing.T) {
	license, err := os.ReadFile("../../LICENSE")
	require.NoError(t, err)
	hosts := 0
	for _, dir := range nestedModules(t) {
		if isInternal(dir) || dir == "docs" { // which nothing gets or installs
			continue
		}
		file := func(name string) string {
			data, err := os.ReadFile(filepath.Join("../..", dir, name))
			require.NoError(t, err)
			return string(data)
		}
		require.Equal(t, string(license), file("LICENSE"), dir)
		readme := file("README.md")
		require.Regexp(t, "(?m)^    go (get|install) "+module+dir+"(@latest|/|$| )", readme, dir)
		host := testedWith.FindStringSubmatch(readme)
		if host == nil {
			require.False(t, strings.HasPrefix(dir, "adapters/") || strings.HasPrefix(dir, "filterpolicy/"),
				"%s/README.md does not say: Tested with `HOST VERSION`", dir)
			continue
		}
		hosts++
		require.Regexp(t, "(?m)^(require |\t)"+regexp.QuoteMeta(host[1]+" "+host[2])+"$", file("go.mod"), dir)
	}
	require.GreaterOrEqual(t, hosts, 11, "the list is real")
}

// ownNames are the adapters whose packages have the name of their directory, which is no package of the host.
var ownNames = map[string]string{
	"avalanche":   "the host's packages are avalanchego's, such as database",
	"godatastore": "the host's package is datastore",
}

// TestAdaptersDoNotHaveTheirHostsName holds that a file can import an adapter and the package of its host that its
// directory is named after.
func TestAdaptersDoNotHaveTheirHostsName(t *testing.T) {
	modules := slices.DeleteFunc(nestedModules(t), func(dir string) bool {
		return filepath.Dir(dir) != "adapters" // not a module of an adapter's own tests
	})
	require.Greater(t, len(modules), len(ownNames), "the list is real")
	for _, dir := range modules {
		name := filepath.Base(dir)
		want := "sift" + name
		if _, ok := ownNames[name]; ok {
			want = name
		}
		data, err := os.ReadFile(filepath.Join("../..", dir, "doc.go"))
		require.NoError(t, err)
		require.Contains(t, string(data), "\npackage "+want+"\n")
	}
	for name := range ownNames {
		require.Contains(t, modules, "adapters/"+name)
	}
}
