// Concurrent prints the packages of a module that start goroutines or are made for several, or whose tests start some:
// what the race detector is for. `make race` tests these. The argument is the directory of the module.
package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	packages, err := find(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "concurrent:", err)
		os.Exit(1)
	}
	// go test goes by this order. Suites of whole stores take longest and have the last names: others run beside them.
	for _, dir := range slices.Backward(packages) {
		fmt.Println("./" + dir)
	}
}

// find returns the directories below root, sorted, of packages that are concurrent. It omits modules of their own,
// examples, and directories and files that Go skips. It omits programs, which root itself is if it is a package, and
// their commands too, because tests start hundreds of processes with few goroutines each. `make race` runs the
// concurrent tests of the filters' suite, which it also omits. Suites of whole stores are there, for the goroutines of
// their stores.
func find(root string) (packages []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && path != "." && passedOver(root, path) {
			return fs.SkipDir
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, ".go") || dir == "." || slices.Contains(packages, dir) {
			return nil
		}
		if built, err := build.Default.MatchFile(filepath.Join(root, dir), filepath.Base(path)); err != nil || !built {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		suite := strings.HasPrefix(dir, "internal/storetest/")
		if err == nil && (suite || startsGoroutines(file) || !strings.HasSuffix(path, "_test.go") && isShared(file)) {
			packages = append(packages, dir)
		}
		return err
	})
	slices.Sort(packages)
	return packages, err
}

func passedOver(root, dir string) bool {
	_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
	name := filepath.Base(dir)
	return err == nil || name == "testdata" || strings.HasPrefix(name, ".") ||
		slices.Contains([]string{"cmd", "examples", "internal/storecmd", "filterpolicy/internal/conformance"}, dir)
}

// isShared reports whether a file imports sync or sync/atomic.
func isShared(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		return spec.Path.Value == `"sync"` || spec.Path.Value == `"sync/atomic"`
	})
}

// startsGoroutines reports whether a file has a go statement, or calls a method Go, as that of sync.WaitGroup, or
// AfterFunc.
func startsGoroutines(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && (f.Sel.Name == "Go" || f.Sel.Name == "AfterFunc")
		}
		return !found
	})
	return found
}
