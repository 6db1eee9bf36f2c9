package readamp

import (
	"context"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// Run measures what the config says: the rows in turns, and then the two trees. Of the results, those of trees have
// the shape cell.Grown. A wrong answer ends the run with an error that matches bench.ErrWrongAnswer.
func Run(ctx context.Context, lab *cell.Lab, c *Config) ([]*cell.Result, error) {
	rows, trees, err := c.cells()
	if err != nil {
		return nil, err
	}
	lab.Loading = cell.Loading{Compactions: c.Store.Compactions, BatchKeys: c.Store.BatchKeys,
		SpacePercent: c.Store.SpacePercent}
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
	few, err := treeKeys(source, trees, maxTreeKeys)
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

// treeKeys returns the keys of the trees, of which there are at most limit, and puts their number into the settings. A
// file has a name there, and its first keys are taken.
func treeKeys(source keys.Source, trees []cell.Row, limit int) (keys.Source, error) {
	if source.Present() <= limit {
		return source, nil
	}
	if !keys.IsCount(trees[0].Settings.Keys) {
		return first{source, limit}, nil
	}
	for i := range trees {
		trees[i].Settings.Keys = strconv.Itoa(limit)
	}
	return trees[0].Settings.Open()
}

// first is the first keys of a file, with all of its absent ones.
type first struct {
	keys.Source
	n int
}

// Present implements [keys.Source].
func (f first) Present() int { return f.n }

// Describe implements [keys.Source].
func (f first) Describe() keys.Description {
	d := f.Source.Describe()
	d.Present = f.n
	return d
}
