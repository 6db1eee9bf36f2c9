package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/filterpolicy"
)

// A built store is a directory with the files of some settings.
type built struct {
	text   string // Settings.BuildText
	dir    string
	source keys.Source
	about  Build
	shape  engine.Shape
	store  engine.Store // nil while it is not open
}

func (b *built) close() error {
	if b == nil || b.store == nil {
		return nil
	}
	store := b.store
	b.store = nil
	return store.Close()
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
	if t.YoungFiles, t.Overwrites, err = s.shaped(); err != nil {
		return t, err
	}
	if s.Budget == Spread {
		e := filterpolicy.Expected(v.Policy, source.Present())
		t.FilterBudgetBytes = int64(e.BitsPerKey * float64(source.Present()) / 8)
	}
	return t, nil
}

// build makes the store of a cell in a new directory.
func (x *run) build(ctx context.Context) (err error) {
	b := &built{text: x.settings.BuildText(), source: x.source}
	if b.dir, err = os.MkdirTemp(x.lab.dir, "store-*"); err != nil {
		return fmt.Errorf("make a directory for the store: %w", err)
	}
	defer func() {
		if err != nil {
			x.built, err = nil, errors.Join(err, os.RemoveAll(b.dir))
		}
	}()
	if err := x.checkRoom(); err != nil {
		return err
	}
	if b.about.Tree, err = x.settings.tree(x.source, x.variant); err != nil {
		return err
	}
	if x.budget > 0 {
		b.about.Tree.FilterBudgetBytes = x.budget
	}
	x.built = b
	if err := x.open(); err != nil {
		return err
	}
	l := &loader{x: x, about: &b.about, Loader: measure.Loader{Source: x.source, Values: x.values, Store: b.store,
		Keys: x.source.Present()}}
	return errors.Join(l.load(ctx), b.close())
}

// checkRoom refuses a store that does not fit on the disk.
func (x *run) checkRoom() error {
	if x.variant.Null {
		return nil
	}
	n := x.source.Present()
	data := (x.source.Describe().MeanLen + float64(x.values.Size())) * float64(n)
	compression := x.settings.Compression
	if x.settings.Values == RandomValues {
		compression = "none" // it would reach nothing
	}
	return bench.CheckRoom(x.lab.dir, n, bench.SpaceOf(compression, int64(data)))
}

func (x *run) open() error {
	s := x.settings.store()
	if x.settings.Shape == Grown { // so that the loader says when to flush
		s.MemtableBytes = min(engine.MaxMemtable, max(s.MemtableBytes, x.built.about.Tree.BaseLevelBytes))
	}
	tree := x.built.about.Tree
	tree.Remember = x.settings.Remember // cells of one store may differ in it
	store, err := x.variant.Open(x.built.dir, s, tree)
	if err != nil {
		return err
	}
	if x.lab.Wrap != nil {
		store = x.lab.Wrap(x.store, store)
	}
	x.built.store = store
	return nil
}

type loader struct {
	measure.Loader
	x     *run
	about *Build
}

// load writes every key, gives the tree its shape, and notes what that took.
func (l *loader) load(ctx context.Context) error {
	l.about.Usage = engine.UnknownUsage()
	if l.x.variant.Null {
		return nil
	}
	start, before := time.Now(), measure.Written()
	var err error
	switch {
	case l.x.settings.Shape == Grown:
		err = l.grow(ctx)
	case l.about.Tree.Overwrites > 0:
		err = l.overwrite(ctx)
	default:
		err = l.settle(ctx)
	}
	if err != nil {
		return err
	}
	a := l.about
	a.WrittenBytes = measure.Written() - before
	if a.DiskBytes, _, err = measure.OnDisk(l.x.built.dir); err != nil {
		return err
	}
	a.LoadSeconds = time.Since(start).Seconds() - a.SettleSeconds
	if m, ok := l.Store.(engine.Meter); ok {
		a.Usage = m.Usage()
		// What is in memory now depends on which files of compactions are still open.
		a.Usage.FilterMemory, a.Usage.IndexMemory, a.Usage.CacheMemory = engine.Unknown, engine.Unknown, engine.Unknown
	}
	a.LiveBytes = int64(l.perKey() * float64(l.Keys))
	a.UserBytes = int64(l.perKey() * float64(l.Keys+a.Rewritten))
	l.x.built.shape, err = l.Store.Shape()
	a.Settled = l.x.built.shape.Settled()
	return err
}

// perKey returns the mean bytes of a key with its value.
func (l *loader) perKey() float64 { return l.Source.Describe().MeanLen + float64(l.Values.Size()) }

// grow loads the keys little by little, as a store in use gets them, and rewrites some
// until the upper levels are filled.
func (l *loader) grow(ctx context.Context) error {
	phase := l.x.phase("grow", l.Keys, "keys")
	if err := l.Load(ctx, phase.Add); err != nil {
		return err
	}
	shape, err := l.Store.Shape()
	if err != nil {
		return err
	}
	total := shape.Total()
	// Without filters, so that as many keys are rewritten whatever the filter.
	perBase := int(l.about.Tree.BaseLevelBytes * total.Entries / max(1, total.Bytes-total.FilterBytes))
	l.about.Rewritten, err = l.Rewrite(ctx, perBase)
	phase.Done()
	return err
}

// Of a memtable, entries take more than their bytes: with this share of it a flush never comes
// before its time.
const memtableShare = 0.25

// overwrite loads the keys and writes all of them again some times, which one is chance, in flushes of
// a part of a memtable with a rest after each. What the store has to rewrite for its space is then the
// same every time.
func (l *loader) overwrite(ctx context.Context) error {
	total := l.Keys * (1 + l.about.Tree.Overwrites)
	phase := l.x.phase("overwrite", total, "keys")
	l.Order = func(write int) int {
		if write < l.Keys {
			return write
		}
		return int(keys.Mix(l.x.settings.DataSeed^overwriteOrder+uint64(write)) % uint64(l.Keys))
	}
	size := max(1, int(memtableShare*float64(l.x.settings.Memtable)/l.perKey()))
	for done := 0; done < total; done += size {
		n := min(size, total-done)
		if err := l.Flush(ctx, n); err != nil {
			return err
		}
		phase.Add(n)
	}
	phase.Done()
	l.about.Rewritten = total - l.Keys
	return nil
}

// overwriteOrder tells the order of overwrites from others of the same seed.
const overwriteOrder = 0x6f766572

// settle loads the keys as fast as it goes, compacts everything, and writes young
// files over it if the shape has some.
func (l *loader) settle(ctx context.Context) error {
	phase := l.x.phase("load", l.Keys, "keys")
	if err := l.Fill(ctx, phase.Add); err != nil {
		return err
	}
	phase.Done()
	start := time.Now()
	phase = l.x.phase("settle", 0, "")
	if err := l.Store.Settle(ctx); err != nil {
		return err
	}
	young := max(1, int(min(youngShare*float64(l.Keys), memtableShare*float64(l.x.settings.Memtable)/l.perKey())))
	for range l.about.Tree.YoungFiles { // none of which is compacted
		if err := l.Flush(ctx, young); err != nil {
			return err
		}
		l.about.Rewritten += young
	}
	phase.Done()
	l.about.SettleSeconds = time.Since(start).Seconds()
	return nil
}
