package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// programs are the root's packages that its programs are made of, beside a main function. A program of a nested module,
// whose go.mod names the root's version, is one of them with what that module has: nobody imports it.
var programs = []string{"internal/storecmd", "internal/objectscmd"}

// testSupport are the root's packages that tests of other modules may import: support for tests that nobody
// outside needs, and the file system that they give a store for its disk.
var testSupport = []string{"internal/golden", "internal/cli/clitest", "internal/harness",
	"internal/lookuptrace/tracetest", "internal/property", "internal/scale", "internal/vfs"}

// face is what all programs have in common: how their command lines are read, what they print. A program of the tree
// that is a module of its own has it too.
var face = []string{"internal/cli", "internal/cli/progress"}

// TestModulesMeetInPublic keeps nested modules to what other modules can import of the root too.
// The compiler lets them import its internal packages, as their paths begin like the root's. Tests
// share packages for tests, which no importer's build sees. The root imports
// nothing of theirs, so that its go.mod, which every embedder inherits, stays as short as it is.
func TestModulesMeetInPublic(t *testing.T) {
	nested := nestedModules(t)
	require.Subset(t, nested, []string{"redisfilter", "objstore/s3", "adapters/bleve", "cmd/siftimport"},
		"the list is real")
	moduleOf := func(path string) string { // its directory, "" for the root
		i := slices.IndexFunc(nested, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
		if i < 0 {
			return ""
		}
		return nested[i]
	}
	fromNested := 0
	walkSources(t, func(path string) {
		if filepath.Ext(path) != ".go" {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			dir, ours := strings.CutPrefix(imported, module)
			from, to := moduleOf(path), moduleOf(dir)
			switch {
			case !ours || from == to:
				continue
			case from == "":
				t.Errorf("%s imports %s: the root depends on no other module of the tree", path, imported)
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
