package archtest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxFloors bounds the longest chain of files of one package of the store that use each other. Files
// in a cycle share a floor.
const maxFloors = 10

// TestTheHouseHasRoom holds the size of the store. A change that needs more room takes something
// out first.
func TestTheHouseHasRoom(t *testing.T) {
	store := sourcesOf(t, "./kv")
	linked, kv := 0, store[module+"kv"]
	for _, p := range store {
		linked += p.lines
	}
	for _, room := range []struct {
		what    string
		is, max int
	}{
		{"lines that kv links", linked, 64_774},
		{"files of kv", len(kv.files), 60},
		{"files of kv that use each other in a circle", largestRing(kv.uses()), 45},
		{"lines of kv", kv.lines, 9_247},
		{"methods of DB, exported or not", methodsOf(kv, "DB"), 151},
		{"fields of DB", kv.types.Scope().Lookup("DB").Type().Underlying().(*types.Struct).NumFields(), 24},
		{"exported names of kv, with methods and fields", exportedNames(kv.types), 314},
	} {
		t.Logf("%s: %d of %d", room.what, room.is, room.max)
		assert.LessOrEqual(t, room.is, room.max, room.what)
	}
	for path, p := range store {
		assert.LessOrEqual(t, floorsOf(p.uses()), maxFloors, path)
	}
}

// TestTestsOfKVAreNamedForItsFiles holds that a file of tests begins with the name of the file that it tests.
func TestTestsOfKVAreNamedForItsFiles(t *testing.T) {
	files, err := filepath.Glob("../../kv/*.go")
	require.NoError(t, err)
	named, tests := map[string]bool{"main": true, "example": true}, []string{}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".go")
		if test, ok := strings.CutSuffix(name, "_test"); ok {
			tests = append(tests, test)
		} else {
			named[name] = true
		}
	}
	require.Greater(t, len(tests), 50)
	for _, name := range tests {
		found := named[name]
		for i, r := range name {
			found = found || r == '_' && named[name[:i]]
		}
		assert.True(t, found, "kv/%s_test.go: begin its name with that of the file that it tests", name)
	}
}

// A source is a package that was read from its files.
type source struct {
	types *types.Package
	info  types.Info
	set   *token.FileSet
	files []*ast.File
	lines int
}

// sourcesOf reads the packages of the module that a program links with pkg, by their paths.
func sourcesOf(t *testing.T, pkg string) map[string]source {
	t.Helper()
	const form = `{{if not .Standard}}{{.ImportPath}} {{.Dir}} {{join .GoFiles ","}}{{end}}`
	listed := goList(t, "-deps", "-f", form, pkg)
	exports := exportsOf(t, pkg)
	sources := map[string]source{}
	for ; len(listed) > 0; listed = listed[3:] {
		if !strings.HasPrefix(listed[0], module) {
			continue
		}
		s := source{set: token.NewFileSet(), info: types.Info{Uses: map[*ast.Ident]types.Object{}}}
		for name := range strings.SplitSeq(listed[2], ",") {
			file, err := parser.ParseFile(s.set, filepath.Join(listed[1], name), nil, 0)
			require.NoError(t, err)
			s.files = append(s.files, file)
			s.lines += s.set.File(file.Pos()).LineCount() - 1
		}
		from := importer.ForCompiler(s.set, "gc", func(path string) (io.ReadCloser, error) {
			return os.Open(exports[path])
		})
		p, err := (&types.Config{Importer: from}).Check(listed[0], s.set, s.files, &s.info)
		require.NoError(t, err)
		s.types = p
		sources[listed[0]] = s
	}
	return sources
}

// uses returns, for each file of s, the other files that declare what it uses.
func (s *source) uses() map[string]map[string]bool {
	uses := map[string]map[string]bool{}
	for id, object := range s.info.Uses {
		from, to := s.set.Position(id.Pos()).Filename, s.set.Position(object.Pos()).Filename
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		if object.Pkg() == s.types && from != to && to != "" {
			uses[from][to] = true
		}
	}
	return uses
}

// floorsOf returns the nodes of the longest path of a graph whose cycles are one node each.
func floorsOf(uses map[string]map[string]bool) int {
	ring := rings(uses)
	height := map[string]int{} // of a ring's first node
	var floor func(node string) int
	floor = func(node string) int {
		if h, ok := height[ring[node]]; ok {
			return h
		}
		highest := 0
		for member, of := range ring {
			if of != ring[node] {
				continue
			}
			for next := range uses[member] {
				if ring[next] != of {
					highest = max(highest, floor(next))
				}
			}
		}
		height[ring[node]] = highest + 1
		return highest + 1
	}
	floors := 0
	for node := range uses {
		floors = max(floors, floor(node))
	}
	return floors
}

// largestRing returns the number of nodes in the largest cycle.
func largestRing(uses map[string]map[string]bool) (largest int) {
	members := map[string]int{}
	for _, of := range rings(uses) {
		members[of]++
		largest = max(largest, members[of])
	}
	return largest
}

// rings returns, for each node, one that stands for all nodes of its cycle. It finds cycles by what
// each node reaches, which is quick for the files of a package.
func rings(uses map[string]map[string]bool) map[string]string {
	reaches := map[string]map[string]bool{}
	for node := range uses {
		seen, queue := map[string]bool{node: true}, []string{node}
		for ; len(queue) > 0; queue = queue[1:] {
			for next := range uses[queue[0]] {
				if !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
		}
		reaches[node] = seen
	}
	ring := map[string]string{}
	for node := range uses {
		ring[node] = node
		for other := range reaches[node] {
			if reaches[other][node] {
				ring[node] = min(ring[node], other)
			}
		}
	}
	return ring
}

func TestFloorsAreCounted(t *testing.T) {
	to := func(files ...string) map[string]bool {
		m := map[string]bool{}
		for _, f := range files {
			m[f] = true
		}
		return m
	}
	require.Equal(t, 1, floorsOf(map[string]map[string]bool{"a": to(), "b": to()}))
	require.Equal(t, 3, floorsOf(map[string]map[string]bool{"a": to("b", "c"), "b": to("c"), "c": to()}))
	circle := map[string]map[string]bool{"a": to("b"), "b": to("a", "c"), "c": to()}
	require.Equal(t, 2, floorsOf(circle))
	require.Equal(t, 2, largestRing(circle))
}

// methodsOf counts the methods of a type of p, those of pointers to it too.
func methodsOf(p source, name string) int {
	return types.NewMethodSet(types.NewPointer(p.types.Scope().Lookup(name).Type())).Len()
}

// exportedNames counts the names of p that a program can write: types, functions, variables, constants,
// and the exported methods and fields of exported types.
func exportedNames(p *types.Package) (n int) {
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		n++
		named, ok := object.Type().(*types.Named)
		if _, isType := object.(*types.TypeName); !ok || !isType || object.(*types.TypeName).IsAlias() {
			continue
		}
		for m := range named.Methods() {
			n += btoi(m.Exported())
		}
		switch u := named.Underlying().(type) {
		case *types.Struct:
			for f := range u.Fields() {
				n += btoi(f.Exported())
			}
		case *types.Interface:
			n += u.NumExplicitMethods()
		}
	}
	return n
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
