// Package results handles sets of cells' results: their files, one per cell, written whole
// or not at all under the cell's name; tables of some metrics by some settings; and what
// differs between two sets, counters exactly and times by ranks.
package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/internal/cli/outfile"
)

// suffix ends the name of every file.
const suffix = ".json"

// Path returns the file of a cell in a directory.
func Path(dir string, s cell.Settings) string { return filepath.Join(dir, s.Name()+suffix) }

// Save writes the result of a cell to its file in a directory, which it makes.
func Save(dir string, r *cell.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return WriteJSON(Path(dir, r.Settings), r)
}

// Find returns the result of a cell from a directory, nil if there is none: no file,
// one of another schema, or one of other settings.
func Find(dir string, s cell.Settings) (*cell.Result, error) {
	data, err := os.ReadFile(Path(dir, s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	found, err := parse(data)
	if err != nil || len(found) != 1 || found[0].Settings.Text() != s.Text() {
		return nil, nil //nolint:nilerr // what is not this cell's result is made anew
	}
	return found[0], nil
}

// Load reads the results of a directory, or of a file that has one or an array of
// them, in the order of their names.
func Load(path string) ([]*cell.Result, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, bench.Usagef("results: %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = list(path); err != nil {
			return nil, fmt.Errorf("results: %w", err)
		}
	}
	var all []*cell.Result
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("results: %w", err)
		}
		found, err := parse(data)
		if err != nil {
			return nil, bench.Usagef("%s: %w", file, err)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, bench.Usagef("%s: no results; kvbench run and kvbench sweep write them with --out", path)
	}
	slices.SortStableFunc(all, func(a, b *cell.Result) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// list returns the files of results in a directory.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// parse reads one result, or an array of them.
func parse(data []byte) ([]*cell.Result, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	var found []*cell.Result
	if err := json.Unmarshal(data, &found); err != nil {
		return nil, fmt.Errorf("not a result of kvbench: %w", err)
	}
	for _, r := range found {
		if r == nil || r.Schema != cell.Schema {
			schema := ""
			if r != nil {
				schema = r.Schema
			}
			return nil, fmt.Errorf("its schema is %q, not %s: it is not a cell's result, or one of another kvbench",
				schema, cell.Schema)
		}
	}
	return found, nil
}

// WriteJSON writes a result to a file as outfile.Write does: whole, or not at all.
func WriteJSON(path string, result any) error {
	data, err := page.JSON(result)
	if err != nil {
		return err
	}
	return outfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
