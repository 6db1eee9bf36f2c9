package archtest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOutsidersCanNameWhatTheySee walks all that the public packages export.
func TestOutsidersCanNameWhatTheySee(t *testing.T) {
	packages := publicPackages(t)
	require.Greater(t, len(packages), 4, "the list is real")
	for name, hidden := range hiddenTypes(packages, module) {
		t.Errorf("%s mentions %s: outsiders cannot name it", name, hidden)
	}
}

// publicPackages returns the packages of the module that other modules can import, from what the
// compiler exports of them.
func publicPackages(t *testing.T) (packages []*types.Package) {
	t.Helper()
	public := slices.DeleteFunc(goList(t, "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./..."), isInternal)
	exports := exportsOf(t, public...)
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, path := range public {
		p, err := from.Import(path)
		require.NoError(t, err)
		packages = append(packages, p)
	}
	return packages
}

// exportsOf returns the files in which the compiler described packages and what they import.
func exportsOf(t *testing.T, packages ...string) map[string]string {
	t.Helper()
	files := goList(t, append([]string{"-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}"},
		packages...)...)
	exports := map[string]string{}
	for pair := range slices.Chunk(files, 2) {
		exports[pair[0]] = pair[1]
	}
	return exports
}

func isInternal(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }

// A faceWalk goes through the types that exported names mention.
type faceWalk struct {
	module  string
	aliased map[*types.TypeName]bool // types that have an exported alias in a public package
	seen    map[types.Type]bool
	found   map[string]string // an exported name, and a type it mentions that has no name outside
}

// hiddenTypes returns the exported names of packages that mention a type of the module which code
// outside of it cannot name, each with such a type.
func hiddenTypes(packages []*types.Package, module string) map[string]string {
	w := &faceWalk{module, map[*types.TypeName]bool{}, map[types.Type]bool{}, map[string]string{}}
	exported := func(visit func(o types.Object)) {
		for _, p := range packages {
			for _, name := range p.Scope().Names() {
				if o := p.Scope().Lookup(name); o.Exported() {
					visit(o)
				}
			}
		}
	}
	exported(func(o types.Object) {
		if a, ok := o.Type().(*types.Alias); ok {
			if n, ok := types.Unalias(a).(*types.Named); ok {
				w.aliased[n.Origin().Obj()] = true
			}
		}
	})
	exported(func(o types.Object) {
		name := strings.TrimPrefix(o.Pkg().Path(), module) + "." + o.Name()
		if _, ok := o.(*types.TypeName); ok {
			w.declared(name, types.Unalias(o.Type()))
		} else {
			w.mentioned(name, o.Type())
		}
	})
	return w.found
}

// declared goes through a type that has a name: its methods, and what it is made of.
func (w *faceWalk) declared(where string, t types.Type) {
	n, ok := t.(*types.Named)
	if !ok {
		w.mentioned(where, t)
		return
	}
	if w.seen[n] {
		return
	}
	w.seen[n] = true
	for p := range n.TypeParams().TypeParams() {
		w.mentioned(where, p.Constraint())
	}
	for m := range n.Methods() {
		if m.Exported() {
			w.mentioned(where+"."+m.Name(), m.Type())
		}
	}
	w.mentioned(where, n.Underlying())
}

// mentioned goes through a type that stands in a signature, a field or a declaration.
func (w *faceWalk) mentioned(where string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		w.mentioned(where, types.Unalias(t))
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			w.mentioned(where, arg)
		}
		w.named(where, t.Origin())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() && promotes(f.Type()) {
				w.mentioned(where+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				w.mentioned(where+"."+m.Name(), m.Type())
			}
		}
	case *types.Signature:
		w.mentioned(where, t.Params())
		w.mentioned(where, t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			w.mentioned(where, v.Type())
		}
	case *types.Map:
		w.mentioned(where, t.Key())
		w.mentioned(where, t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.mentioned(where, t.Elem())
	}
}

// promotes reports whether a struct that embeds a type has exported names by it.
func promotes(t types.Type) bool {
	if types.NewMethodSet(types.NewPointer(t)).Len() > 0 {
		return true
	}
	fields, ok := t.Underlying().(*types.Struct)
	if !ok {
		return types.IsInterface(t)
	}
	for f := range fields.Fields() {
		if f.Exported() || f.Embedded() && promotes(f.Type()) {
			return true
		}
	}
	return false
}

func (w *faceWalk) named(where string, n *types.Named) {
	o := n.Obj()
	if o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), w.module) {
		return // error, or another module's
	}
	name := strings.TrimPrefix(o.Pkg().Path(), w.module) + "." + o.Name()
	if !w.aliased[o] && (!o.Exported() || isInternal(o.Pkg().Path())) {
		w.found[where] = name
		return
	}
	w.declared(name, n)
}

// TestHiddenTypesAreFound holds the walk against a package that hides types in every way.
func TestHiddenTypesAreFound(t *testing.T) {
	const inside = `package in
		type Key struct{ User []byte }
		type Set struct{ K Key }
		func (Set) Find(Key) {}
		type Level int
		type Entry struct{ At Level }`
	const outside = `package pub
		import "m/internal/in"
		type private struct{ N int }
		type Entry = in.Entry
		type Set = in.Set
		type Plain struct { N int; E Entry; hidden in.Key }
		func (Plain) Next() (Plain, error) { return Plain{}, nil }
		func (Plain) unseen(in.Key) {}
		func Parameter(k in.Key) {}
		func Result() []*private { return nil }
		func Callback(f func(map[string]in.Key) error) {}
		type Field struct { C chan in.Level }
		type Embeds struct { private }
		func (Embeds) Method(...in.Key) {}
		type Wide interface { Get() in.Key }
		type Generic[T any] struct { V T }
		var Instance Generic[in.Key]
		const Constant in.Level = 1
		type Of = map[in.Level]bool
		func Good(p *Plain, g Generic[Entry], w interface{ unseen() in.Key }) {}`
	fset := token.NewFileSet()
	checked := map[string]*types.Package{}
	for _, p := range []struct{ path, text string }{{"m/internal/in", inside}, {"m/pub", outside}} {
		file, err := parser.ParseFile(fset, p.path, p.text, parser.SkipObjectResolution)
		require.NoError(t, err)
		conf := types.Config{Importer: importerFunc(func(path string) (*types.Package, error) {
			return checked[path], nil
		})}
		checked[p.path], err = conf.Check(p.path, fset, []*ast.File{file}, nil)
		require.NoError(t, err)
	}
	found := hiddenTypes([]*types.Package{checked["m/pub"]}, "m/")
	var got []string
	for name, hidden := range found {
		got = append(got, fmt.Sprint(name, " ", hidden))
	}
	require.ElementsMatch(t, []string{
		"pub.Callback internal/in.Key",
		"pub.Constant internal/in.Level",
		"pub.Embeds.Method internal/in.Key",
		"pub.Embeds.private pub.private",
		"pub.Entry.At internal/in.Level",
		"pub.Field.C internal/in.Level",
		"pub.Instance internal/in.Key",
		"pub.Of internal/in.Level",
		"pub.Parameter internal/in.Key",
		"pub.Result pub.private",
		"pub.Set.Find internal/in.Key",
		"pub.Set.K internal/in.Key",
		"pub.Wide.Get internal/in.Key",
	}, got)
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
