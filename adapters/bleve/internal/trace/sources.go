package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/mapping"
)

// A document is a file of Go's source tree.
type document struct {
	ID      string `json:"-"`
	Package string `json:"package"`
	Text    string `json:"text"`
	Lines   int    `json:"lines"`
}

// parts of the source tree, in the order in which they are indexed.
var parts = []string{"sort", "strings", "net", "crypto", "go", "encoding", "runtime", "internal"}

// sources returns the first files of the source tree of the Go that is installed: so many, if there are.
func sources(most int) (docs []document, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	src := os.DirFS(filepath.Join(strings.TrimSpace(string(root)), "src"))
	for _, part := range parts {
		err := fs.WalkDir(src, part, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil || len(docs) == most:
				return err
			case e.IsDir() && e.Name() == "testdata":
				return fs.SkipDir
			case e.IsDir() || filepath.Ext(path) != ".go":
				return nil
			}
			text, err := fs.ReadFile(src, path)
			docs = append(docs, document{path, filepath.ToSlash(filepath.Dir(path)), string(text),
				strings.Count(string(text), "\n")})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// goMapping has the text of files analyzed, packages as they are, and numbers.
func goMapping() mapping.IndexMapping {
	m := bleve.NewIndexMapping()
	pkg := bleve.NewTextFieldMapping()
	pkg.Analyzer = "keyword"
	text := bleve.NewTextFieldMapping()
	text.Store = false
	m.DefaultMapping.AddFieldMappingsAt("package", pkg)
	m.DefaultMapping.AddFieldMappingsAt("text", text)
	m.DefaultMapping.AddFieldMappingsAt("lines", bleve.NewNumericFieldMapping())
	return m
}

// fill indexes documents in batches.
func fill(index bleve.Index, docs []document) error {
	const size = 50
	for len(docs) > 0 {
		b := index.NewBatch()
		for _, d := range docs[:min(size, len(docs))] {
			if err := b.Index(d.ID, d); err != nil {
				return err
			}
		}
		if err := index.Batch(b); err != nil {
			return err
		}
		docs = docs[min(size, len(docs)):]
	}
	return nil
}
