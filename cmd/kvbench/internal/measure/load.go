package measure

import (
	"context"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// A tree that is grown depends on the keys and the settings of the store alone, since nothing
// is written while a compaction runs.
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

// A Loader writes the first keys of a source in load order, which is random with respect to
// key order, and begins again after the last.
type Loader struct {
	Source keys.Source
	Values keys.Values
	Store  engine.Store
	Keys   int // distinct keys
	// Order says which key a write has, of those from 0 on; nil: one after the other
	Order func(write int) int

	next       int // the write to come
	flushes    int
	key, value []byte
}

// ctxEvery writes share a look at the context.
const ctxEvery = 1 << 12

// Write writes the next n keys.
func (l *Loader) Write(ctx context.Context, n int) error {
	for i := range n {
		if i%ctxEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key := l.next % l.Keys
		if l.Order != nil {
			key = l.Order(l.next)
		}
		l.key = l.Source.AppendPresent(l.key[:0], key)
		l.value = l.Values.Append(l.value[:0], l.key)
		if err := l.Store.Put(l.key, l.value); err != nil {
			return err
		}
		l.next++
	}
	return nil
}

// Fill writes every key once, without a rest, and tells done of them as it goes on.
func (l *Loader) Fill(ctx context.Context, done func(keys int)) error {
	for l.next < l.Keys {
		n := min(ctxEvery, l.Keys-l.next)
		if err := l.Write(ctx, n); err != nil {
			return err
		}
		done(n)
	}
	return nil
}

// loadFlushes is how many flushes a load with rests is made of.
const loadFlushes = 40

// Load writes every key once, in flushes with a rest after each.
func (l *Loader) Load(ctx context.Context, done func(keys int)) error {
	for l.next < l.Keys {
		n := min(max(1, l.Keys/loadFlushes), l.Keys-l.next)
		if err := l.Flush(ctx, n); err != nil {
			return err
		}
		done(n)
	}
	return nil
}

// Rewrite fills the upper levels, the first of which has room for perBase keys, and
// returns how many keys it wrote.
func (l *Loader) Rewrite(ctx context.Context, perBase int) (int, error) {
	large, small := max(1, perBase/largeFlushes), max(1, perBase/smallFlushes)
	start := l.next
	for l.next-start < int(rewrittenShare*float64(l.Keys)) {
		if err := l.Flush(ctx, large); err != nil {
			return 0, err
		}
	}
	for last := l.next + smallBases*perBase; l.next < last || l.flushes%filesPerMerge != filesLeft; {
		if err := l.Flush(ctx, small); err != nil {
			return 0, err
		}
	}
	return l.next - start, nil
}

// Flush writes keys into one file of level 0 and waits for what it sets off.
func (l *Loader) Flush(ctx context.Context, keys int) error {
	store, ok := l.Store.(RestingStore)
	if !ok {
		return engine.Unsupported("shape: the store cannot wait for its compactions")
	}
	if err := l.Write(ctx, keys); err != nil {
		return err
	}
	l.flushes++
	return store.Rest(ctx)
}
