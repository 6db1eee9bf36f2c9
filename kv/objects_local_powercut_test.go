package kv

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs/crashfs"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/wal"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A frozenStore is an object store in memory of which copies can be taken while nothing in it changes. Nil is none.
type frozenStore struct {
	objstore.Store
	changes sync.RWMutex // held for reading while an object changes
}

func newFrozenStore() *frozenStore { return &frozenStore{Store: objstore.NewMem()} }

func (s *frozenStore) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	s.changes.RLock()
	defer s.changes.RUnlock()
	return s.Store.Put(ctx, key, r, size)
}

func (s *frozenStore) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	s.changes.RLock()
	defer s.changes.RUnlock()
	return s.Store.PutIfAbsent(ctx, key, body)
}

func (s *frozenStore) Delete(ctx context.Context, key string) error {
	s.changes.RLock()
	defer s.changes.RUnlock()
	return s.Store.Delete(ctx, key)
}

// cut returns a copy as of the moment at which copyDisk copies a disk.
func (s *frozenStore) cut(copyDisk func()) *frozenStore {
	if s == nil {
		copyDisk()
		return nil
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	copyDisk()
	clone, ctx := newFrozenStore(), context.Background()
	for o, err := range s.List(ctx, "", "") {
		b := make([]byte, o.Size)
		if err == nil {
			_, err = s.GetRange(ctx, o.Key, 0, b)
		}
		if err == nil {
			err = clone.Put(ctx, o.Key, bytes.NewReader(b), o.Size)
		}
		if err != nil {
			panic(err) // a store in memory never fails
		}
	}
	return clone
}

// options are those of a store in it, whose log is on the local disk as a rule.
func (s *frozenStore) options(rng *rand.Rand) *objects.Config {
	if s == nil {
		return nil
	}
	return &objects.Config{Store: s, LocalLog: rng.IntN(4) > 0, Grace: -1, Patience: time.Millisecond}
}

// TestPowerCutOfALocalLog is TestPowerCut for stores of which the log alone is on the disk whose power is cut, at most
// openings: the object store is as it was at that moment.
func TestPowerCutOfALocalLog(t *testing.T) {
	t.Parallel()
	want := int64(scale.Count(40, 240))
	var cuts, calls, seeds atomic.Int64
	for cuts.Load() < want {
		seed := uint64(seeds.Add(1) - 1)
		r := &cutRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 5)), objects: newFrozenStore()}
		calls.Add(int64(r.run(100, 10)))
		require.NotEmpty(t, r.cuts, "history %d", seed)
		cuts.Add(int64(len(r.cuts)))
	}
	require.Positive(t, cuts.Load())
	t.Logf("%d power cuts in %d calls of %d histories, each followed by one during recovery", cuts.Load(), calls.Load(),
		seeds.Load())
}

// The power fails at each call that changes the disk while logs are given up: the store is what it was, and no log is
// lost from the disk.
func TestPowerCutWhileALogIsAbandoned(t *testing.T) {
	bucket, disk := newFrozenStore(), crashfs.NewDisk()
	on := func(bucket *frozenStore, disk *crashfs.Disk, before func() error) *machines {
		return &machines{t, bucket, crashfs.New(disk, before), -1}
	}
	m := on(bucket, disk, nothing)
	db := m.open("a", m.options())
	putDurably(t, db, "flushed", "1")
	require.NoError(t, db.Flush(t.Context()))
	putDurably(t, db, "logged", "2")
	crash(t, db)
	var logs []string // what they hold
	for _, name := range m.logs("a") {
		if b := m.read(filepath.Join("a", name)); len(b) > wal.HeaderSize {
			logs = append(logs, string(b))
		}
	}
	require.NotEmpty(t, logs)
	db = m.open("b", m.abandoning())
	putDurably(t, db, "b", "3")
	require.NoError(t, db.Close())
	want := storetest.Model{"flushed": "1", "b": "3"}

	rng := rand.New(rand.NewPCG(1, 77))
	for nth := 1; ; nth++ {
		calls, cutDisk := 0, (*crashfs.Disk)(nil)
		var cutBucket *frozenStore
		var disks *crashfs.Disk
		before := bucket.cut(func() {
			disks = disk.CutTo(100, rng)
		})
		m := on(before, disks, func() error {
			if calls++; calls == nth {
				cutBucket = before.cut(func() { cutDisk = disks.Cut(rng) })
			}
			return nil
		})
		require.NoError(t, m.open("a", m.abandoning()).Close())
		if cutDisk == nil {
			require.Greater(t, nth, 10)
			return
		}
		m = on(cutBucket, cutDisk, nothing)
		db, err := Open("a", m.options())
		if err != nil {
			require.ErrorIs(t, err, objects.ErrLogAbandoned)
			db = m.open("a", m.abandoning())
		}
		requireContents(t, want, db)
		require.NoError(t, db.Close())
		var left []string
		for _, name := range m.files("a") {
			left = append(left, string(m.read(filepath.Join("a", name))))
		}
		require.Subset(t, left, logs, "cut at call %d", nth)
	}
}
