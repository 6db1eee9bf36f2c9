package measure

import (
	"context"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
)

// A Grower makes trees of several levels whose shape depends on the keys and the settings of
// the store alone, since nothing is written while a compaction runs.
//
// A tree of several levels needs little data if its files and levels are small. The
// base level is given a 150th of the bytes of keys and values, about a hundredth of
// what they take compressed, so that there are three levels below level 0.
const (
	baseFraction = 150
	filesPerBase = 2
	minFileBytes = 16 << 10 // the least that the store takes
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

// LoadFlushes is how many flushes a load is made of.
const LoadFlushes = 40

// GrownTree sizes the levels for n keys of keyBytes bytes on average, with values of
// valueBytes.
func GrownTree(n int, keyBytes float64, valueBytes int) engine.Tree {
	base := max(minFileBytes, int64(float64(n)*(keyBytes+float64(valueBytes))/baseFraction))
	return engine.Tree{FileBytes: max(minFileBytes, base/filesPerBase), BaseLevelBytes: base}
}

// A RestingStore can be left to itself until it finds nothing more to compact.
type RestingStore interface {
	engine.Store
	// Rest writes out what is buffered, flushes, and waits for compactions.
	Rest(ctx context.Context) error
}

// A writer writes the keys of a source in load order, which is random with respect to
// key order, and begins again after the last.
type writer struct {
	source keys.Source
	values keys.Values
	db     engine.Store
	keys   int // distinct keys
	next   int // the key to write next
	key    []byte
	value  []byte
}

// writerStep is the number of keys between two looks at the context.
const writerStep = 1 << 12

// Write writes the next keys.
func (w *writer) Write(ctx context.Context, keys int) error {
	for i := range keys {
		if i%writerStep == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		w.key = w.source.AppendPresent(w.key[:0], w.next%w.keys)
		w.value = w.values.Append(w.value[:0], w.key)
		if err := w.db.Put(w.key, w.value); err != nil {
			return err
		}
		w.next++
	}
	return nil
}

// Fill writes the first n keys of a source once, without a rest, and tells done of them
// as it goes on.
func Fill(ctx context.Context, source keys.Source, v keys.Values, db engine.Store, n int, done func(keys int)) error {
	w := &writer{source: source, values: v, db: db, keys: n}
	for w.next < w.keys {
		step := min(writerStep, w.keys-w.next)
		if err := w.Write(ctx, step); err != nil {
			return err
		}
		done(step)
	}
	return nil
}

// A Grower writes the keys of one store.
type Grower struct {
	writer
	db      RestingStore
	flushes int
}

// NewGrower returns a grower that writes the first n keys of a source, again and again.
func NewGrower(source keys.Source, v keys.Values, db RestingStore, n int) *Grower {
	return &Grower{writer: writer{source: source, values: v, db: db, keys: n}, db: db}
}

// Load writes every key once, in flushes of so many keys with a rest after each.
func (g *Grower) Load(ctx context.Context, perFlush int, done func(keys int)) error {
	for g.next < g.keys {
		n := min(max(1, perFlush), g.keys-g.next)
		if err := g.Flush(ctx, n); err != nil {
			return err
		}
		done(n)
	}
	return nil
}

// Rewrite fills the upper levels, the first of which has room for perBase keys, and
// returns how many keys it wrote.
func (g *Grower) Rewrite(ctx context.Context, perBase int) (int, error) {
	large, small := max(1, perBase/largeFlushes), max(1, perBase/smallFlushes)
	start := g.next
	for g.next-start < int(rewrittenShare*float64(g.keys)) {
		if err := g.Flush(ctx, large); err != nil {
			return 0, err
		}
	}
	for last := g.next + smallBases*perBase; g.next < last || g.flushes%filesPerMerge != filesLeft; {
		if err := g.Flush(ctx, small); err != nil {
			return 0, err
		}
	}
	return g.next - start, nil
}

// Flush writes keys into one file of level 0 and waits for what it sets off.
func (g *Grower) Flush(ctx context.Context, keys int) error {
	if err := g.Write(ctx, keys); err != nil {
		return err
	}
	g.flushes++
	return g.db.Rest(ctx)
}
