package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// A built store is a directory with the files of some settings.
type built struct {
	text   string // Settings.BuildText
	dir    string
	source keys.Source
	about  Build
	shape  engine.Shape
}

// Young files hold this share of the keys each, less if a memtable holds less.
const youngShare = 0.01

// tree returns how the levels of the cell's store are sized.
func (s *Settings) tree(source keys.Source, v *engine.Variant) (engine.Tree, error) {
	var t engine.Tree
	if s.Shape == Grown {
		t = measure.GrownTree(source.Present(), source.Describe().MeanLen, int(s.ValueSize))
	}
	t.Compaction = s.Compaction
	var err error
	if t.YoungFiles, err = s.youngFiles(); err != nil {
		return t, err
	}
	if s.Budget == Spread {
		e := filterpolicy.Expected(v.Policy, source.Present())
		t.FilterBudgetBytes = int64(e.BitsPerKey * float64(source.Present()) / 8)
	}
	return t, nil
}

// build makes the store of a cell in a new directory.
func (x *run) build(ctx context.Context) (b *built, err error) {
	b = &built{text: x.settings.BuildText(), source: x.source}
	if b.dir, err = os.MkdirTemp(x.lab.dir, "store-*"); err != nil {
		return nil, fmt.Errorf("make a directory for the store: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(b.dir))
		}
	}()
	if b.about.Tree, err = x.settings.tree(x.source, x.variant); err != nil {
		return nil, err
	}
	line := measure.StartTimeline()
	store, err := x.open(b, line.Background)
	if err != nil {
		return nil, err
	}
	l := &loader{x: x, b: b, opened: store, store: watch(store, line), line: line}
	err = l.load(ctx)
	return b, errors.Join(err, store.Close())
}

// open opens the store of a build with the cell's settings, which tells f, if that is
// not nil, of its background work.
func (x *run) open(b *built, f func(engine.Background)) (engine.Store, error) {
	s := x.settings.store()
	s.Background = f
	if x.settings.Shape == Grown { // so that the grower says when to flush
		s.MemtableBytes = min(engine.MaxMemtable, max(s.MemtableBytes, b.about.Tree.BaseLevelBytes))
	}
	store, err := x.variant.Open(b.dir, s, b.about.Tree)
	if err == nil && x.lab.Wrap != nil {
		store = x.lab.Wrap(x.settings.Name(), store)
	}
	return store, err
}

// A loader fills a store.
type loader struct {
	x      *run
	b      *built
	opened engine.Store
	store  engine.Store // the same, watched
	line   *measure.Recorder
}

// load writes every key, gives the tree its shape, and notes what that took.
func (l *loader) load(ctx context.Context) error {
	if l.x.variant.Null {
		l.b.about.Usage = engine.UnknownUsage()
		return nil
	}
	start := time.Now()
	var err error
	if l.x.settings.Shape == Grown {
		err = l.grow(ctx)
	} else {
		err = l.settle(ctx)
	}
	if err != nil {
		return err
	}
	a := &l.b.about
	a.Timeline = l.line.Timeline(time.Now())
	a.LoadSeconds = time.Since(start).Seconds() - a.SettleSeconds
	a.Usage = engine.UnknownUsage()
	if m, ok := l.opened.(engine.Meter); ok {
		a.Usage = m.Usage()
		// What is in memory now depends on which files of compactions are still open.
		a.Usage.FilterMemory, a.Usage.IndexMemory, a.Usage.CacheMemory = engine.Unknown, engine.Unknown, engine.Unknown
	}
	perKey := l.x.source.Describe().MeanLen + float64(l.x.settings.ValueSize)
	a.LiveBytes = int64(perKey * float64(l.x.source.Present()))
	a.UserBytes = int64(perKey * float64(l.x.source.Present()+a.Rewritten))
	l.b.shape, err = l.store.Shape()
	a.Settled = l.b.shape.Settled()
	return err
}

// grower returns what writes the store's keys.
func (l *loader) grower() (*measure.Grower, error) {
	store, ok := l.store.(measure.RestingStore)
	if !ok {
		return nil, engine.Unsupported("shape %s: %s cannot wait for its compactions", l.x.settings.Shape,
			l.x.settings.Engine)
	}
	return measure.NewGrower(l.x.source, l.x.values, store, l.x.source.Present()), nil
}

// grow loads the keys little by little, as a store in use gets them, and rewrites some
// until the upper levels are filled.
func (l *loader) grow(ctx context.Context) error {
	g, err := l.grower()
	if err != nil {
		return err
	}
	n := l.x.source.Present()
	phase := l.x.phase("grow", n, "keys")
	if err := g.Load(ctx, n/measure.LoadFlushes, phase.Add); err != nil {
		return err
	}
	shape, err := l.store.Shape()
	if err != nil {
		return err
	}
	total := shape.Total()
	// Without filters, so that as many keys are rewritten whatever the filter.
	perBase := int(l.b.about.Tree.BaseLevelBytes * total.Entries / max(1, total.Bytes-total.FilterBytes))
	l.b.about.Rewritten, err = g.Rewrite(ctx, perBase)
	phase.Done()
	return err
}

// settle loads the keys as fast as it goes, compacts everything, and writes young
// files over it if the shape has some.
func (l *loader) settle(ctx context.Context) error {
	if err := l.writeAll(ctx); err != nil {
		return err
	}
	start := time.Now()
	phase := l.x.phase("settle", 0, "")
	if err := l.store.Settle(ctx); err != nil {
		return err
	}
	if n := l.b.about.Tree.YoungFiles; n > 0 {
		if err := l.writeYoung(ctx, n); err != nil {
			return err
		}
	}
	phase.Done()
	l.b.about.SettleSeconds = time.Since(start).Seconds()
	return nil
}

// writeAll writes every key.
func (l *loader) writeAll(ctx context.Context) error {
	n := l.x.source.Present()
	phase := l.x.phase("load", n, "keys")
	if err := measure.Fill(ctx, l.x.source, l.x.values, l.store, n, phase.Add); err != nil {
		return err
	}
	phase.Done()
	return nil
}

// writeYoung writes n files of keys that are there, none of which is compacted.
func (l *loader) writeYoung(ctx context.Context, n int) error {
	g, err := l.grower()
	if err != nil {
		return err
	}
	perKey := l.x.source.Describe().MeanLen + float64(l.x.settings.ValueSize)
	const memtableShare = 0.25 // entries take more there than their bytes
	keys := min(youngShare*float64(l.x.source.Present()), memtableShare*float64(l.x.settings.Memtable)/perKey)
	for range n {
		if err := g.Flush(ctx, max(1, int(keys))); err != nil {
			return err
		}
	}
	l.b.about.Rewritten = n * max(1, int(keys))
	return nil
}
