package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/sstable"
)

// An experiment is a run under way. It is used by one goroutine.
type experiment struct {
	*Config
	source      *keys.Generated
	values      keys.Values
	compression sstable.Compression

	wire     *wire
	counters objstore.Counters
	objects  objstore.Store // over the wire, counted

	logs    string // the directory of logs on the local disk
	result  *tidy.Result
	scratch []byte // of values that answers are compared with
}

// Run measures what the config says. A wrong answer ends it with an error that matches
// bench.ErrWrongAnswer. Its temporary directory is gone when it returns.
func Run(ctx context.Context, c *Config) (_ *tidy.Result, err error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	x := &experiment{Config: c}
	if x.source, err = keys.NewGenerated(c.Keys, c.KeySize, c.Seed); err != nil {
		return nil, err
	}
	if x.values, err = keys.NewValues(c.ValueSize, c.Seed); err != nil {
		return nil, err
	}
	if x.compression, err = sstable.ParseCompression(c.Compression); err != nil {
		return nil, err
	}
	return tidy.Measure("objects", "", c.Settings, c.Argv, c.Dir, func(r *tidy.Result, dir string) error {
		x.result, x.logs = r, filepath.Join(dir, "log")
		origin, err := x.open(dir)
		if err != nil {
			return err
		}
		r.About, r.Notes = c.about(origin), c.notes()
		return errors.Join(x.measure(ctx), x.objects.Close())
	})
}

func (x *experiment) measure(ctx context.Context) (err error) {
	for i, spec := range x.Filters {
		if err = x.filter(ctx, i, spec); err != nil {
			err = fmt.Errorf("%s: %w", spec, err)
			break
		}
	}
	if x.Open != nil {
		err = errors.Join(err, x.clear(ctx))
	}
	if err != nil {
		return err
	}
	x.cost(tidy.Of("operation", "the whole run"), "", x.counters.Snapshot(), 1)
	for _, of := range x.result.Cells("operation", "shape", "filter") {
		if of["operation"] == Poll && of["shape"] == Settled {
			const polls = 365.25 * 24 * 3600 / 12
			x.result.Notes = append(x.result.Notes, fmt.Sprintf("a view that polls each second costs $%.2f a month.",
				x.result.Values(of, "dollars")[0]*polls/1e6))
		}
	}
	return nil
}

// cleanup is how long it takes at most to delete the objects of a run that its context has ended.
const cleanup = time.Minute

func (x *experiment) clear(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanup)
		defer cancel()
	}
	for o, err := range x.objects.List(ctx, "", "") {
		if err == nil {
			err = x.objects.Delete(ctx, o.Key)
		}
		if err != nil {
			return fmt.Errorf("objects of the measurement are left: %w", err)
		}
	}
	return nil
}

// open opens the object store of all stores, and says what it is.
func (x *experiment) open(dir string) (origin string, err error) {
	var s objstore.Store
	switch {
	case x.Open != nil:
		origin = cmp.Or(x.Origin, "handed in")
		s, err = x.Open()
	case x.InMemory:
		origin, s = "memory", objstore.NewMem()
	default:
		data := int64(x.Keys) * int64(x.KeySize+x.ValueSize) * int64(len(x.Filters))
		if err := bench.CheckRoom(dir, x.Keys, bench.SpaceOf(x.Compression, data)); err != nil {
			return "", err
		}
		origin = "directory"
		s, err = objstore.OpenDir(filepath.Join(dir, "objects"))
	}
	if err != nil {
		return "", err
	}
	x.wire = &wire{Store: s}
	x.objects = objstore.WithCounters(x.wire, &x.counters)
	return origin, nil
}

// operator returns which of the filters operations are measured with: the first that is a filter.
func (x *experiment) operator() int {
	for i, spec := range x.Filters {
		if spec != "none" {
			return i
		}
	}
	return 0
}

func (x *experiment) filter(ctx context.Context, i int, spec string) error {
	policy, err := filterpolicy.Parse(spec)
	if err != nil {
		return err
	}
	s := &store{x: x, policy: policy, shape: Settled,
		objects: objstore.Sub(x.objects, fmt.Sprintf("%02d", i))}
	operates := i == x.operator()
	load := operation{Load, 1, 1, func() error { return s.load(ctx) }}
	if err := s.maybe(nil, operates, load); err != nil {
		return err
	}
	for _, shape := range []string{Settled, Young} {
		if shape == Young {
			if err := s.addYoung(ctx, operates); err != nil {
				return err
			}
		}
		if err := s.rows(ctx); err != nil {
			return err
		}
		if operates {
			if err := s.operations(ctx); err != nil {
				return err
			}
		}
	}
	if operates {
		return s.writes(ctx)
	}
	return nil
}

func (x *experiment) traffic(f func() error) (objstore.Counts, error) {
	before := x.counters.Snapshot()
	err := f()
	return x.counters.Snapshot().Minus(before), err
}

// check holds what a lookup has returned against what it should have. A missing key is nil.
func (x *experiment) check(key, got []byte, present bool) (err error) {
	ok := !present && got == nil
	if present && got != nil {
		ok, x.scratch = x.values.Check(x.scratch, key, got)
	}
	if !ok {
		return fmt.Errorf("%w: key %x, present %t: got %x", bench.ErrWrongAnswer, key, present, got)
	}
	return nil
}

type store struct {
	x       *experiment
	policy  filterpolicy.Policy
	objects objstore.Store
	shape   string // what it has now
}

// options returns those of the store with a cache, 0 for none. What is not flushed is put into
// the object store only if there is much of it: else the number of requests would depend on the
// time that the run takes.
func (s *store) options(cache int64) *kv.Options {
	if cache == 0 {
		cache = -1 // none
	}
	return &kv.Options{
		Filter: s.policy, CacheSize: cache, MemtableSize: 4 << 20, TargetFileSize: s.x.TargetFile,
		Compression: s.x.compression, L0CompactionThreshold: s.x.Young + 16,
		Objects: &objects.Config{Store: s.objects, LogInterval: time.Hour},
	}
}

// limited returns the options of a store whose memory is short: memtables and buffers have most of
// the limit, and filters are in memory only as far as there is room.
func (s *store) limited() *kv.Options {
	o := s.options(0)
	o.MemoryLimit, o.CacheSize, o.MemtableSize = s.x.Memory, 0, s.x.Memory/4
	return o
}

func (s *store) using(o *kv.Options, f func(*kv.DB) error) error {
	db, err := kv.Open(s.x.logs, o)
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// maybe does an operation, and notes what it costs if asked to.
func (s *store) maybe(db *kv.DB, note bool, op operation) (err error) {
	if note {
		return s.note(db, op)
	}
	for i := 0; i < op.repetitions && err == nil; i++ {
		err = op.do()
	}
	return err
}

// load writes all keys and compacts them into one sorted run.
func (s *store) load(ctx context.Context) error {
	phase := s.x.Progress.Start("load "+s.policy.String(), s.x.Keys, "keys")
	defer phase.Done()
	return s.using(s.options(0), func(db *kv.DB) error {
		for from := 0; from < s.x.Keys; from += batchKeys {
			to := min(from+batchKeys, s.x.Keys)
			if err := s.put(ctx, db, from, to, kv.Async); err != nil {
				return err
			}
			phase.Add(to - from)
		}
		return db.Compact(ctx, nil, nil)
	})
}

// put writes the keys of load order [from, to) in one batch.
func (s *store) put(ctx context.Context, db *kv.DB, from, to int, o *kv.WriteOptions) error {
	b := db.NewBatch()
	var key, value []byte
	for i := from; i < to; i++ {
		key = s.x.source.AppendPresent(key[:0], i%s.x.Keys)
		value = s.x.values.Append(value[:0], key)
		if err := b.Set(key, value); err != nil {
			return err
		}
	}
	return b.CommitContext(ctx, o)
}

// addYoung writes some keys again, in files of their own, and notes what a flush costs if asked to.
func (s *store) addYoung(ctx context.Context, note bool) error {
	per := s.x.Keys / youngPart
	return s.using(s.options(0), func(db *kv.DB) error {
		from := 0
		err := s.maybe(db, note, operation{FlushFile, s.x.Young, 1, func() error {
			from += per
			if err := s.put(ctx, db, from-per, from, kv.NoSync); err != nil {
				return err
			}
			return db.Flush(ctx)
		}})
		if err != nil {
			return err
		}
		s.shape = Young
		return s.checkShape(db.Metrics())
	})
}

// checkShape returns an error if the store has not the shape that it should have.
func (s *store) checkShape(m *metrics.Store) error {
	young := m.Levels[0].Runs
	if s.shape == Settled && len(m.Runs) == 1 || s.shape == Young && young == s.x.Young && len(m.Runs) == young+1 {
		return nil
	}
	return fmt.Errorf("%w: the store should be %s, and has %d sorted runs, %d of them in level 0",
		bench.ErrIdentity, s.shape, len(m.Runs), young)
}
