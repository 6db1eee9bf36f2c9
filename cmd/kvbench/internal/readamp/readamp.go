// Package readamp measures read amplification: what a lookup of an existing key and of an absent key costs, in files,
// filter checks, blocks, bytes and time, on several engines with several filters.
//
// It is the cells of two sweeps, which are measured in turns: one of engines with filters, and one of two trees of
// several levels whose filters take the same memory, one with uniform bits and one with a filter budget.
package readamp

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/sweep"
)

// SiftKV is the engine that has a row for each filter, and Null the row that says what the harness itself costs.
const (
	SiftKV = "siftkv"
	Null   = "null"
)

// Engines lists what can be measured, in the order of the report: SiftKV, and others with their filters. Pebble's
// iterator shares a store with its Get. RocksDB is there only if it is built in.
func Engines() []string {
	words := []string{SiftKV, "pebble/none", "pebble/own:10", engine.PebbleIteratorName + "/own:10",
		"pebble/blocked:10"}
	if engine.HasRocksDB() {
		words = append(words, "rocksdb/none", "rocksdb/bloom:10", "rocksdb/ribbon:10")
	}
	return words
}

// A Config says what to measure.
type Config struct {
	Engines  []string    // of Engines
	Filters  []string    // of SiftKV, one row each
	Budget   string      // filter whose bits are spread over levels; empty or "none": no trees
	Settings sweep.Block // of all cells, one value each, except engine, filter, budget and shape
}

// block returns the settings of an engine with some filters. Those that it does not have are left out.
func (c *Config) block(name string, filters ...string) sweep.Block {
	b := maps.Clone(c.Settings)
	b["engine"], b["filter"] = []string{name}, filters
	if name != SiftKV {
		delete(b, "compaction")
	}
	if name == Null || strings.HasPrefix(name, engine.RocksDBName) {
		delete(b, "index")
	}
	return b
}

// rows returns the cells that are measured first: null, those of SiftKV, one per filter, and those of other engines.
func (c *Config) rows() ([]cell.Row, error) {
	if err := bench.CheckNames("--engine", c.Engines, Engines()); err != nil {
		return nil, err
	}
	spec := &sweep.Spec{Settings: c.block(Null, "none")}
	for _, word := range Engines() {
		name, filter, _ := strings.Cut(word, "/")
		switch {
		case !slices.Contains(c.Engines, word):
		case word != SiftKV:
			spec.Also = append(spec.Also, c.block(name, filter))
		case len(c.Filters) == 0:
			return nil, bench.Usagef("--filter: SiftKV needs at least one, such as none or blocked:10")
		default:
			spec.Also = append(spec.Also, c.block(SiftKV, c.Filters...))
		}
	}
	return planned(spec, rowName)
}

func rowName(s *cell.Settings) string {
	bits, own := strings.CutPrefix(s.Filter, "own:")
	name := strings.Replace(s.Engine, "-", " ", 1)
	switch {
	case s.Engine == Null:
		return Null
	case own:
		return name + " bloom(" + bits + ")"
	case s.Engine == "pebble" && s.Filter != "none":
		return name + " siftkv " + s.Filter
	}
	return name + " " + s.Filter
}

// trees returns the rows of equal bits and of the same memory spread over the levels, none if there is to be no such
// comparison.
func (c *Config) trees() ([]cell.Row, error) {
	if c.Budget == "" || c.Budget == "none" || !slices.Contains(c.Engines, SiftKV) {
		return nil, nil
	}
	b := c.block(SiftKV, c.Budget)
	b["shape"], b["budget"] = []string{cell.Grown}, []string{cell.Uniform, cell.Spread}
	rows, err := planned(&sweep.Spec{Settings: b}, func(s *cell.Settings) string {
		return SiftKV + " " + map[string]string{cell.Uniform: "uniform ", cell.Spread: "budget "}[s.Budget] + s.Filter
	})
	if err != nil {
		return nil, bench.Usagef("--budget %s: %w", c.Budget, err)
	}
	for i := range rows {
		s := &rows[i].Settings
		if n, ok := keys.Count(s.Keys); ok && n > maxTreeKeys {
			s.Keys = strconv.Itoa(maxTreeKeys)
		}
	}
	return rows, nil
}

// planned returns the cells of a specification as rows. An unsupported combination is an error.
func planned(spec *sweep.Spec, name func(s *cell.Settings) string) (rows []cell.Row, err error) {
	plan, err := spec.Plan()
	if err != nil {
		return nil, err
	}
	if len(plan.Skipped) > 0 {
		return nil, bench.Usagef("%s", plan.Skipped[0])
	}
	for _, s := range plan.Cells {
		rows = append(rows, cell.Row{Name: name(&s), Settings: s})
	}
	return rows, nil
}

// Run measures what the config says: the rows in turns, and then the two trees. Of the results, those of trees have
// the shape cell.Grown. A wrong answer ends the run with an error that matches bench.ErrWrongAnswer.
func Run(ctx context.Context, lab *cell.Lab, c *Config) ([]*cell.Result, error) {
	rows, err := c.rows()
	if err != nil {
		return nil, err
	}
	trees, err := c.trees()
	if err != nil {
		return nil, err
	}
	phase := lab.Progress.Start("read keys", 0, "")
	source, err := rows[0].Settings.Open()
	if err != nil {
		return nil, err
	}
	phase.Done()
	set, err := lab.Interleave(ctx, source, rows)
	if err != nil || len(trees) == 0 {
		return set, err
	}
	few, err := treeKeys(source, &trees[0].Settings, maxTreeKeys)
	if err != nil {
		return set, err
	}
	for i := range trees { // each absent key once
		s := &trees[i].Settings
		s.Lookups = int64(max(1, min(few.Absent(), maxTreeLookups)/int(s.Reps)))
	}
	more, err := lab.Interleave(ctx, few, trees)
	return append(set, more...), err
}

// Bounds of the two trees: one of several levels needs little data if its files and levels are small, and lookups are
// held in memory.
const (
	maxTreeKeys    = 300_000
	maxTreeLookups = 1_000_000 // in each
)

// treeKeys returns the keys of the trees, of which there are at most limit: of a file the first ones.
func treeKeys(source keys.Source, s *cell.Settings, limit int) (keys.Source, error) {
	switch {
	case source.Present() <= limit:
		return source, nil
	case keys.IsCount(s.Keys):
		return s.Open()
	}
	return first{source, limit}, nil
}

// first is the first keys of a file, with all of its absent ones.
type first struct {
	keys.Source
	n int
}

func (f first) Present() int { return f.n }

func (f first) Describe() keys.Description {
	d := f.Source.Describe()
	d.Present = f.n
	return d
}
