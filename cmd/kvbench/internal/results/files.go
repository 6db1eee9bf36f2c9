// Package results handles sets of results: their files, written whole or not at all, those of cells under the cell's
// name; tables of some metrics by some settings; and what differs between two sets, counters exactly and times by
// ranks.
package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/cli/outfile"
)

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

// ErrOther is matched if the file of a cell has something else: a result of another schema or of other settings.
var ErrOther = errors.New("not the result of this cell")

// Find returns the result of a cell from a directory, nil if there is no file.
func Find(dir string, s cell.Settings) (*cell.Result, error) {
	path := Path(dir, s)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	found, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrOther, err)
	}
	if len(found.Cells) != 1 || found.Cells[0].Settings.Text() != s.Text() {
		return nil, fmt.Errorf("%s: %w: its settings differ", path, ErrOther)
	}
	return found.Cells[0], nil
}

// A Set is results: cells in the order of their names, and rows of other experiments.
type Set struct {
	Cells []*cell.Result
	Rows  []*tidy.Result
}

// Measured returns the cells of all results in the form that they share. Several runs of an experiment with the same
// settings on one machine are one with more repetitions.
func (s *Set) Measured() []*tidy.Measured {
	var all []*tidy.Measured
	rows := map[*tidy.Measured][]tidy.Row{}
	for _, r := range s.Rows {
		for _, m := range r.Measured() {
			at := slices.IndexFunc(all, func(o *tidy.Measured) bool {
				return o.Name == m.Name && maps.Equal(o.Run, m.Run) && sameMachine(o.Environment, m.Environment)
			})
			if at < 0 {
				at, all = len(all), append(all, m)
			}
			rows[all[at]] = append(rows[all[at]], tidy.Rows(m.Metrics)...)
			maps.Copy(all[at].Units, m.Units)
		}
	}
	for m, list := range rows {
		m.Metrics = tidy.Metrics(list)
	}
	return append(cell.Measured(s.Cells), all...)
}

// sameMachine reports whether times of two results can be compared.
func sameMachine(a, b *environ.Environment) bool {
	return a.CPU == b.CPU && a.Cores == b.Cores && a.Kernel == b.Kernel
}

// All returns the results of both forms.
func (s *Set) All() []any {
	all := make([]any, 0, len(s.Cells)+len(s.Rows))
	for _, r := range s.Cells {
		all = append(all, r)
	}
	for _, r := range s.Rows {
		all = append(all, r)
	}
	return all
}

func (s *Set) add(other *Set) {
	s.Cells, s.Rows = append(s.Cells, other.Cells...), append(s.Rows, other.Rows...)
}

// Load reads the results of a directory, or of a file that has one or an array of them.
func Load(path string) (*Set, error) {
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
	all := &Set{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("results: %w", err)
		}
		found, err := parse(data)
		if err != nil {
			return nil, bench.Usagef("%s: %w", file, err)
		}
		all.add(found)
	}
	if len(all.Cells)+len(all.Rows) == 0 {
		return nil, bench.Usagef("%s: no results; kvbench run and sweep write cells with --out, others --json", path)
	}
	slices.SortStableFunc(all.Cells, func(a, b *cell.Result) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

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
func parse(data []byte) (*Set, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, fmt.Errorf("not a result of kvbench: %w", err)
	}
	found := &Set{}
	for _, part := range parts {
		var form struct{ Schema, Experiment string }
		err := json.Unmarshal(part, &form)
		switch {
		case err != nil:
		case form.Schema != tidy.Schema:
			return nil, fmt.Errorf("its schema is %q, not %s: it is not a result, or one of another kvbench",
				form.Schema, tidy.Schema)
		case form.Experiment == cell.Experiment:
			found.Cells = append(found.Cells, &cell.Result{})
			err = json.Unmarshal(part, found.Cells[len(found.Cells)-1])
		default:
			found.Rows = append(found.Rows, &tidy.Result{})
			in := json.NewDecoder(bytes.NewReader(part))
			in.UseNumber() // settings keep all digits
			err = in.Decode(found.Rows[len(found.Rows)-1])
		}
		if err != nil {
			return nil, fmt.Errorf("not a result of kvbench: %w", err)
		}
	}
	return found, nil
}

// WriteJSON writes a result to a file as outfile.Write does: whole, or not at all.
func WriteJSON(path string, result any) error {
	data, err := bench.JSON(result)
	if err != nil {
		return err
	}
	return outfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
