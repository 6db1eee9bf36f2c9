package readamp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/filterpolicy"
)

// Bounds of the comparison: a tree of several levels needs little data if its files and
// levels are small, and budgetPass bounds the lookups that are held in memory.
const (
	maxBudgetKeys    = 300_000
	maxBudgetLookups = 1_000_000 // in each store
	budgetPass       = 1 << 16
)

// budgetOrder is the seed of the order in which keys are asked for, see cell.Lab.Interleave.
const budgetOrder = 0x62756467

// budgetPolicy returns the filter of the comparison, nil if there is to be none.
func (c *Config) budgetPolicy() (filterpolicy.Policy, error) {
	if c.Budget == "" {
		return nil, nil
	}
	policy, err := filterpolicy.Parse(c.Budget)
	if err != nil {
		return nil, bench.Usagef("--budget: %w", err)
	}
	if policy.Name() == "none" || !slices.Contains(c.Engines, SiftKV) {
		return nil, nil
	}
	if !engine.CanSpread(policy) {
		return nil, bench.Usagef("--budget %s: the bits of this filter cannot be chosen; "+
			"take another, such as bloom:10 or blocked:10", policy)
	}
	return policy, nil
}

// A tree is an open store of the comparison.
type tree struct {
	result *BudgetStore
	dir    string
	store  engine.Store
	reader engine.Reader // nil until the tree is grown
	reps   []measure.Repetition
}

// compareBudget grows both stores, the second with the filter memory that the first
// turned out to take, and asks both for the same absent keys.
func (x *experiment) compareBudget(ctx context.Context) (b *Budget, err error) {
	n := min(x.source.Present(), maxBudgetKeys)
	b = &Budget{Filter: x.budget.String(), Keys: n, Lookups: min(x.source.Absent(), maxBudgetLookups)}
	b.Uniform.Name, b.Spread.Name = SiftKV+" uniform "+b.Filter, SiftKV+" budget "+b.Filter
	trees := []*tree{{result: &b.Uniform, dir: "uniform"}, {result: &b.Spread, dir: "spread"}}
	defer func() {
		for _, t := range trees {
			err = errors.Join(err, t.close())
		}
	}()
	for _, t := range trees {
		t.result.Tree = measure.GrownTree(n, x.source.Describe().MeanLen, x.config.ValueBytes)
		t.result.Tree.Compaction = x.config.Compaction
		if t.result == &b.Spread {
			t.result.Tree.FilterBudgetBytes = b.Uniform.Shape.Total().FilterBytes
		}
		if b.Rewritten, err = x.grow(ctx, t, n); err != nil {
			return nil, fmt.Errorf("%s: %w", t.result.Name, err)
		}
	}
	if err := x.askTrees(ctx, trees, b.Lookups); err != nil {
		return nil, err
	}
	for _, t := range trees {
		t.result.fill(x.budget, t.reps)
	}
	b.gains()
	return b, nil
}

// grow makes a store of n keys and opens its reader: it loads the keys, compacts them into the
// last level, and rewrites some until there is a tree above. What comes out depends on the
// keys and the store's settings alone, since nothing is written while a compaction runs. It
// notes how long it took and the tree's shape, and returns how many keys it wrote again.
func (x *experiment) grow(ctx context.Context, t *tree, n int) (rewritten int, err error) {
	s, out := x.config.Store, t.result
	s.Compactions = 1
	// so that the loader says when to flush
	s.MemtableBytes = min(engine.MaxMemtable, max(s.MemtableBytes, out.Tree.BaseLevelBytes))
	db, err := engine.OpenSiftKVTree(filepath.Join(x.lab.Dir(), t.dir), s, x.budget, out.Tree)
	if err != nil {
		return 0, err
	}
	t.store = db
	if x.config.Wrap != nil {
		t.store = x.config.Wrap(out.Name, db)
	}
	l := &measure.Loader{Source: x.source, Values: x.values, Store: db, Keys: n}
	phase := x.config.Progress.Start("load "+out.Name, 0, "")
	start := time.Now()
	if err := l.Write(ctx, n); err != nil {
		return 0, err
	}
	if err := db.Settle(ctx); err != nil {
		return 0, err
	}
	loaded, err := db.Shape()
	if err != nil {
		return 0, err
	}
	perBase := int(out.Tree.BaseLevelBytes * loaded.Total().Entries / max(1, loaded.Total().Bytes))
	if rewritten, err = l.Rewrite(ctx, perBase); err != nil {
		return 0, err
	}
	phase.Done()
	out.LoadSeconds = time.Since(start).Seconds()
	if out.Shape, err = db.Shape(); err != nil {
		return 0, err
	}
	t.reader, err = t.store.NewReader(engine.Get, engine.Absent)
	return rewritten, err
}

// close closes the reader, then the store.
func (t *tree) close() error {
	var errs []error
	if t.reader != nil {
		errs = append(errs, t.reader.Close())
	}
	if t.store != nil {
		errs = append(errs, t.store.Close())
	}
	return errors.Join(errs...)
}

// askTrees asks every tree for n absent keys, in turns, after a pass that fills the caches.
func (x *experiment) askTrees(ctx context.Context, trees []*tree, n int) error {
	phase := x.config.Progress.Start("ask for absent keys", n*len(trees), "lookups")
	if err := x.passTrees(ctx, trees, 0, min(budgetPass, n)); err != nil {
		return err
	}
	for _, t := range trees {
		t.reps = nil
	}
	for from := 0; from < n; from += budgetPass {
		size := min(budgetPass, n-from)
		if err := x.passTrees(ctx, trees, from, size); err != nil {
			return err
		}
		phase.Add(size * len(trees))
	}
	phase.Done()
	return nil
}

// passTrees asks one tree after the other for the same keys.
func (x *experiment) passTrees(ctx context.Context, trees []*tree, from, size int) error {
	s := measure.NewStream(x.source, x.values, engine.Absent, keys.Mix(x.config.Seed^budgetOrder), from, size)
	for _, t := range trees {
		rep, err := measure.Visit(ctx, t.reader, s)
		if err != nil {
			return fmt.Errorf("%s: %w", t.result.Name, err)
		}
		t.reps = append(t.reps, rep)
	}
	return nil
}
