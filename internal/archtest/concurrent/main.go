// Concurrent prints the packages of the root module that start goroutines or are made for several: what the race
// detector is for. `make race` tests these.
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
	packages, err := find(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "concurrent:", err)
		os.Exit(1)
	}
	for _, dir := range packages {
		fmt.Println("./" + dir)
	}
}

// find returns the directories below root, sorted, of packages that are concurrent. It leaves out modules of their own,
// examples, the programs' commands (their tests start hundreds of processes with few goroutines each), and directories
// and files that Go passes over.
func find(root string) (packages []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && path != "." && passedOver(root, path) {
			return fs.SkipDir
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.Contains(packages, dir) {
			return nil
		}
		if built, err := build.Default.MatchFile(filepath.Join(root, dir), filepath.Base(path)); err != nil || !built {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err == nil && isConcurrent(file) {
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
		dir == "examples" || dir == "internal/storecmd"
}

// isConcurrent reports whether a file imports sync or sync/atomic, or starts a goroutine.
func isConcurrent(file *ast.File) (found bool) {
	for _, spec := range file.Imports {
		found = found || spec.Path.Value == `"sync"` || spec.Path.Value == `"sync/atomic"`
	}
	ast.Inspect(file, func(n ast.Node) bool {
		_, starts := n.(*ast.GoStmt)
		found = found || starts
		return !found
	})
	return found
}
