package readamp

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/internal/bench/engine"
)

// A tree of several levels needs little data if its files and levels are small. The
// base level is given a 150th of the bytes of keys and values, about a hundredth of
// what they take compressed, so that there are three levels below level 0.
const (
	maxBudgetKeys = 300_000
	baseFraction  = 150
	filesPerBase  = 2
	minFileBytes  = 16 << 10 // the least that the store takes
)

// Upper levels are filled by writing keys again. First in flushes of a quarter of the
// base level, enough to rewrite the last level under the upper ones: a filter has
// the share of the budget that was right when its file was written. Then in small
// flushes, so that in the end the base level holds about half its size or more, and
// level 0 a few files of those that start a compaction.
const (
	rewrittenShare = 0.3
	largeFlushes   = 4  // per base level
	smallFlushes   = 12 // per base level
	smallBases     = 4  // base levels written in small flushes
	filesPerMerge  = 4  // of level 0: the store's default
	filesLeft      = 2  // in level 0
)

// treeOf sizes the levels for n keys.
func (x *experiment) treeOf(n int) engine.Tree {
	bytes := float64(n) * (x.source.Describe().MeanLen + float64(x.config.ValueSize))
	base := max(minFileBytes, int64(bytes/baseFraction))
	return engine.Tree{FileBytes: max(minFileBytes, base/filesPerBase), BaseLevelBytes: base}
}

// A grower writes the keys of one store.
type grower struct {
	x       *experiment
	db      *engine.SiftKV
	keys    int // distinct keys
	next    int // the key to write next
	flushes int
	key     []byte
	value   []byte
}

// grow loads n keys, compacts them into the last level, and rewrites some until
// there is a tree above. What comes out depends on the keys and the store's settings
// alone, since nothing is written while a compaction runs. It notes how long it
// took and the tree's shape, and returns how many keys it wrote again.
func (x *experiment) grow(ctx context.Context, db *engine.SiftKV, n int, s *BudgetStore) (rewritten int, err error) {
	g := &grower{x: x, db: db, keys: n}
	phase := x.config.Progress.Start("load "+s.Name, 0, "")
	start := time.Now()
	if err := g.write(ctx, n); err != nil {
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
	if rewritten, err = g.rewrite(ctx, perBase); err != nil {
		return 0, err
	}
	phase.Done()
	s.LoadSeconds = time.Since(start).Seconds()
	s.Shape, err = db.Shape()
	return rewritten, err
}

// rewrite fills the upper levels, the first of which has room for perBase keys, and
// returns how many keys it wrote.
func (g *grower) rewrite(ctx context.Context, perBase int) (int, error) {
	large, small := max(1, perBase/largeFlushes), max(1, perBase/smallFlushes)
	start := g.next
	for g.next-start < int(rewrittenShare*float64(g.keys)) {
		if err := g.flush(ctx, large); err != nil {
			return 0, err
		}
	}
	for last := g.next + smallBases*perBase; g.next < last || g.flushes%filesPerMerge != filesLeft; {
		if err := g.flush(ctx, small); err != nil {
			return 0, err
		}
	}
	return g.next - start, nil
}

// flush writes keys into one file of level 0 and waits for what it sets off.
func (g *grower) flush(ctx context.Context, keys int) error {
	if err := g.write(ctx, keys); err != nil {
		return err
	}
	g.flushes++
	return g.db.Rest(ctx)
}

// write writes the next keys in load order, which is random with respect to key
// order, and begins again after the last.
func (g *grower) write(ctx context.Context, keys int) error {
	const step = 1 << 12
	for i := range keys {
		if i%step == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		g.key = g.x.source.AppendPresent(g.key[:0], g.next%g.keys)
		g.value = g.x.values.Append(g.value[:0], g.key)
		if err := g.db.Put(g.key, g.value); err != nil {
			return err
		}
		g.next++
	}
	return nil
}
