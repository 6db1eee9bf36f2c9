package models

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// Several stores that share a budget are opened, written, read, compacted and closed, each by a goroutine of its
// own and on a disk that sometimes fails, and each holds what was written to it. Nothing is charged at the end.
func TestBudgetModelOfSeveralStores(t *testing.T) {
	t.Parallel()
	for seed := range uint64(max(scale.Count(3, 3), 3)) {
		b := kv.NewMemoryBudget([]int64{4 << 20, 8 << 20, 32 << 20}[seed%3])
		storetest.WithoutLeaks(func() {
			var wg sync.WaitGroup
			for i := range uint64(scale.Count(3, 5)) {
				wg.Go(func() {
					fs := &vfstest.FaultFS{FS: vfs.NewMem()}
					s := budgetModel{b: b, rng: rand.New(rand.NewPCG(seed, i)), fs: fs, want: storetest.Model{}}
					for range 3 {
						if err := s.life(); err != nil {
							t.Errorf("seed %d, store %d: %v", seed, i, err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
		storetest.RequireNothingCharged(t, b)
	}
}

// A budgetModel is one store, and what it should hold.
type budgetModel struct {
	b    *kv.MemoryBudget
	rng  *rand.Rand
	fs   *vfstest.FaultFS
	want storetest.Model
}

// life opens the store, uses it, and closes it.
func (s *budgetModel) life() (err error) {
	o := stores.RandomOptions(s.rng)
	o.MemoryLimit, o.MemoryBudget, o.CacheSize = 0, s.b, min(o.CacheSize, 0)
	harness.Of(o).FS, harness.Of(o).Backoff = s.fs, storetest.Quick
	o.FalsePositiveMemory = min(o.FalsePositiveMemory, 0)
	o.BlockSize, o.CompactionRate, o.Merger = 64+s.rng.IntN(1000), 0, nil
	o.MemtableSize = []int64{0, 64 << 10, 1 << 20}[s.rng.IntN(3)]
	db, err := kv.Open("db", o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for range 600 {
		if err := s.step(db); err != nil {
			return err
		}
	}
	s.fs.Set(nil)
	stores.UntilResumed(db)
	return s.compare(db)
}

func (s *budgetModel) step(db *kv.DB) error {
	k := fmt.Sprintf("%04d", s.rng.IntN(2000))
	switch n := s.rng.IntN(1000); {
	case n < 600:
		v := fmt.Sprintf("%s %d %0*d", k, s.rng.IntN(1000), 1+s.rng.IntN(800), 0)
		err := db.Set([]byte(k), []byte(v), kv.NoSync)
		if errors.Is(err, kv.ErrReadOnly) { // the disk has failed: it works again
			s.fs.Set(nil)
			stores.UntilResumed(db)
			return nil
		}
		s.want[k] = v
		return err
	case n < 985:
		got, err := db.Get([]byte(k))
		v, ok := s.want[k]
		if errors.Is(err, kv.ErrNotFound) != !ok || ok && (err != nil || string(got) != v) {
			return fmt.Errorf("key %s is %q, %w; want %q, %t", k, got, err, v, ok)
		}
		return nil
	case n < 990:
		return ignoreFull(db.Flush(context.Background()))
	case n < 995:
		return ignoreFull(db.Compact(context.Background(), nil, nil))
	}
	s.fs.Set(vfstest.Quota(s.rng.IntN(20_000)))
	return nil
}

// ignoreFull returns no error if err is that of a disk that is full.
func ignoreFull(err error) error {
	if errors.Is(err, kv.ErrReadOnly) || errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}

func (s *budgetModel) compare(db *kv.DB) error {
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if v, ok := s.want[string(it.Key())]; !ok || v != string(it.Value()) {
			return errors.Join(fmt.Errorf("key %s is %q, want %q, %t", it.Key(), it.Value(), v, ok), it.Close())
		}
		n++
	}
	if n != len(s.want) {
		return errors.Join(fmt.Errorf("%d keys, want %d", n, len(s.want)), it.Close())
	}
	return it.Close()
}

// Stores come and go while others write.
func TestBudgetStoresComeAndGo(t *testing.T) {
	t.Parallel()
	b := kv.NewMemoryBudget(8 << 20)
	storetest.WithoutLeaks(func() {
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				db := stores.OpenDir(t, "db", &kv.Options{MemoryBudget: b, InMemory: true})
				err := errors.Join(
					storetest.LoadShare(setAsync(db), i, 20_000),
					storetest.CheckShare(db.Has, i, 20_000, 1000),
					db.Close(),
				)
				if err != nil {
					t.Error(err)
				}
			})
		}
		for i := range 6 {
			wg.Go(func() {
				for range 8 {
					db, err := kv.Open("db", &kv.Options{MemoryBudget: b, InMemory: true})
					if err != nil {
						t.Error(err)
						return
					}
					err = errors.Join(
						storetest.LoadShare(setAsync(db), i, 700),
						storetest.CheckShare(db.Has, i, 700, 100),
						db.Close(),
					)
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
	storetest.RequireNothingCharged(t, b)
}

func setAsync(db *kv.DB) func(key, value []byte) error {
	return func(key, value []byte) error { return db.Set(key, value, kv.Async) }
}
