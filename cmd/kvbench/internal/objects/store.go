package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A store is what is measured with one filter.
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

// using opens the store, calls f, and closes it.
func (s *store) using(o *kv.Options, f func(*kv.DB) error) error {
	db, err := kv.Open(s.x.logs, o)
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// load writes all keys and compacts them into one sorted run, and says what that costs if asked to.
func (s *store) load(ctx context.Context, say bool) error {
	if say {
		return s.note(nil, Load, 1, func() error { return s.loadAll(ctx) })
	}
	return s.loadAll(ctx)
}

func (s *store) loadAll(ctx context.Context) error {
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

// addYoung writes some keys again, in files of their own, and says what a flush costs if asked to.
func (s *store) addYoung(ctx context.Context, say bool) error {
	per := s.x.Keys / youngPart
	return s.using(s.options(0), func(db *kv.DB) error {
		from := 0
		op, err := s.measure(db, FlushFile, s.x.Young, func() error {
			to := from + per
			if err := s.put(ctx, db, from, to, kv.NoSync); err != nil {
				return err
			}
			from = to
			return db.Flush(ctx)
		})
		if err != nil {
			return err
		}
		if say {
			s.x.add(op)
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

// files returns how many sorted files a store has.
func files(m *metrics.Store) (n int) {
	for _, l := range m.Levels {
		n += l.Files
	}
	return n
}

// bitsPerKey returns the bits that filters have for each entry.
func bitsPerKey(m *metrics.Store) float64 {
	var bytes, entries float64
	for _, l := range m.Levels {
		bytes, entries = bytes+float64(l.FilterBytes), entries+float64(l.Entries)
	}
	return 8 * bytes / entries
}
