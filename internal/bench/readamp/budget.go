package readamp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// maxBudgetLookups bounds the lookups in each store, and budgetPass those that are
// held in memory.
const (
	maxBudgetLookups = 1_000_000
	budgetPass       = 1 << 16
)

// budgetPolicy returns the filter of the comparison, nil if there is to be none.
func budgetPolicy(c *Config) (filterpolicy.Policy, error) {
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
	const keys = 1 << 20
	if filterpolicy.Spread(policy, keys, []uint64{keys})[0] == 0 {
		return nil, bench.Usagef("--budget %s: the bits of this filter cannot be chosen; take another, such as bloom:10 or blocked:10", policy)
	}
	return policy, nil
}

// A tree is an open store of the comparison.
type tree struct {
	result *BudgetStore
	store  engine.Store
	reader engine.Reader // nil until the tree is grown
	took   time.Duration // of the lookups so far
}

// compareBudget grows both stores, the second with the filter memory that the first
// turned out to take, and asks both for the same absent keys.
func (x *experiment) compareBudget(ctx context.Context) (b *Budget, err error) {
	n := min(x.source.Present(), maxBudgetKeys)
	b = &Budget{Filter: x.budget.String(), Keys: n, Lookups: min(x.source.Absent(), maxBudgetLookups)}
	var trees []*tree
	defer func() {
		for _, t := range trees {
			err = errors.Join(err, t.close())
		}
	}()
	b.Uniform.Name, b.Uniform.Tree = SiftKV+" uniform "+b.Filter, x.treeOf(n)
	b.Spread.Name, b.Spread.Tree = SiftKV+" budget "+b.Filter, x.treeOf(n)
	for i, s := range []*BudgetStore{&b.Uniform, &b.Spread} {
		if s == &b.Spread {
			s.Tree.FilterBudgetBytes = b.Uniform.Shape.Total().FilterBytes
		}
		t, rewritten, err := x.openTree(ctx, fmt.Sprintf("tree-%d", i), n, s)
		if t != nil {
			trees = append(trees, t)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		b.Rewritten = rewritten
	}
	if err := x.askTrees(ctx, trees, b.Lookups); err != nil {
		return nil, err
	}
	for _, t := range trees {
		t.result.fill(x.budget, b.Lookups)
	}
	b.gains()
	return b, nil
}

// openTree makes a store of n keys in a directory and opens its reader. The caller
// closes the tree, which there may be along with an error.
func (x *experiment) openTree(ctx context.Context, dir string, n int, s *BudgetStore) (*tree, int, error) {
	settings := x.config.Store
	settings.Compactions = 1
	// so that grow says when to flush
	settings.MemtableBytes = min(engine.MaxMemtable, max(settings.MemtableBytes, s.Tree.BaseLevelBytes))
	db, err := engine.OpenSiftKVTree(filepath.Join(x.dir, dir), settings, x.budget, s.Tree)
	if err != nil {
		return nil, 0, err
	}
	t := &tree{result: s, store: db}
	if x.config.Wrap != nil {
		t.store = x.config.Wrap(s.Name, db)
	}
	rewritten, err := x.grow(ctx, db, n, s)
	if err != nil {
		return t, 0, err
	}
	t.reader, err = t.store.NewReader(engine.Get, engine.Absent)
	return t, rewritten, err
}

// close closes the reader, then the store.
func (t *tree) close() error {
	if t.reader == nil {
		return t.store.Close()
	}
	return errors.Join(t.reader.Close(), t.store.Close())
}

// askTrees asks every tree for n absent keys, after a pass that fills the caches.
func (x *experiment) askTrees(ctx context.Context, trees []*tree, n int) error {
	phase := x.config.Progress.Start("ask for absent keys", n*len(trees), "lookups")
	if err := x.passTrees(ctx, trees, 0, min(budgetPass, n)); err != nil {
		return err
	}
	before := make([]engine.Counters, len(trees))
	for i, t := range trees {
		var err error
		if before[i], err = t.reader.Counters(); err != nil {
			return fmt.Errorf("%s: %w", t.result.Name, err)
		}
		t.took = 0
	}
	for from := 0; from < n; from += budgetPass {
		size := min(budgetPass, n-from)
		if err := x.passTrees(ctx, trees, from, size); err != nil {
			return err
		}
		phase.Add(size * len(trees))
	}
	for i, t := range trees {
		after, err := t.reader.Counters()
		if err != nil {
			return fmt.Errorf("%s: %w", t.result.Name, err)
		}
		t.result.Counters = after.Minus(before[i])
		t.result.NsPerLookup = float64(t.took.Nanoseconds()) / float64(n)
	}
	phase.Done()
	return nil
}

// passTrees asks one tree after the other for the same keys, and adds up the time.
func (x *experiment) passTrees(ctx context.Context, trees []*tree, from, size int) error {
	s := measure.NewStream(x.source, x.values, engine.Absent, keys.Mix(x.config.Seed^budgetOrder), from, size)
	for _, t := range trees {
		took, err := measure.Throughput(ctx, t.reader, s)
		if err != nil {
			return fmt.Errorf("%s: %w", t.result.Name, err)
		}
		t.took += took
	}
	return nil
}
