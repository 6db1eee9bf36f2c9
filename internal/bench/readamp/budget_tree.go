package readamp

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// maxBudgetKeys bounds the keys of the comparison: a tree of several levels needs
// little data if its files and levels are small.
const maxBudgetKeys = 300_000

// treeOf sizes the levels for n keys.
func (x *experiment) treeOf(n int) engine.Tree {
	t := measure.GrownTree(n, x.source.Describe().MeanLen, x.config.ValueSize)
	t.Compaction = x.config.Compaction
	return t
}

// grow loads n keys, compacts them into the last level, and rewrites some until
// there is a tree above. What comes out depends on the keys and the store's settings
// alone, since nothing is written while a compaction runs. It notes how long it
// took and the tree's shape, and returns how many keys it wrote again.
func (x *experiment) grow(ctx context.Context, db *engine.SiftKV, n int, s *BudgetStore) (rewritten int, err error) {
	g := measure.NewGrower(x.source, x.values, db, n)
	phase := x.config.Progress.Start("load "+s.Name, 0, "")
	start := time.Now()
	if err := g.Write(ctx, n); err != nil {
		return 0, err
	}
	if err := db.Settle(ctx); err != nil {
		return 0, err
	}
	loaded, err := db.Shape()
	if err != nil {
		return 0, err
	}
	perBase := int(s.Tree.BaseLevelBytes * loaded.Total().Entries / max(1, loaded.Total().Bytes))
	if rewritten, err = g.Rewrite(ctx, perBase); err != nil {
		return 0, err
	}
	phase.Done()
	s.LoadSeconds = time.Since(start).Seconds()
	s.Shape, err = db.Shape()
	return rewritten, err
}
