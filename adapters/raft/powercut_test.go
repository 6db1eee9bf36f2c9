package siftraft

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/kv"
)

// openOn opens a store on a disk. Its memtables are so small that tests flush them.
func openOn(d *disk) (*Store, error) {
	o := &kv.Options{MemtableSize: 64 << 10}
	*harness.Of(o) = harness.Harness{FS: d, Backoff: harness.AtOnce}
	return Open("store", o)
}

// A content is what a store should have: the data of entries by index, and values by key.
type content struct {
	log    map[uint64]string
	stable map[string]string
}

func (c content) clone() content { return content{maps.Clone(c.log), maps.Clone(c.stable)} }

// of reads what a store has, of the indexes and keys that tests use.
func contentOf(t testing.TB, s *Store) content {
	t.Helper()
	c := content{map[uint64]string{}, map[string]string{}}
	first, err := s.FirstIndex()
	require.NoError(t, err)
	last, err := s.LastIndex()
	require.NoError(t, err)
	for i := first; i <= last && first > 0; i++ {
		var e raft.Log
		require.NoError(t, s.GetLog(i, &e), "entry %d of [%d, %d]", i, first, last)
		c.log[i] = string(e.Data)
	}
	for i := range stableKeys {
		value, err := s.Get(fmt.Append(nil, i))
		if err == nil {
			c.stable[strconv.Itoa(i)] = string(value)
			continue
		}
		require.Equal(t, ErrKeyNotFound, err)
	}
	return c
}

const stableKeys = 3

// A history is random calls of a store as raft makes them, and what the store has to have after them.
type history struct {
	rng  *rand.Rand
	now  content
	next int // numbers what is written
}

func newHistory(seed uint64) *history {
	return &history{rng: rand.New(rand.NewPCG(seed, 1)), now: content{map[uint64]string{}, map[string]string{}}}
}

// call returns a call, and what the store has after it.
func (h *history) call() (call func(*Store) error, after content) {
	after = h.now.clone()
	var first, last uint64
	if len(after.log) > 0 {
		first, last = slices.Min(slices.Collect(maps.Keys(after.log))), slices.Max(slices.Collect(maps.Keys(after.log)))
	}
	switch what := h.rng.IntN(10); {
	case what < 5 || first == 0:
		return h.store(after, last+1), after
	case what < 6: // behind a snapshot
		clear(after.log)
		return h.store(after, last+2+h.rng.Uint64N(5)), after
	case what < 7: // a prefix that a snapshot is in place of
		return h.remove(after, first, first+h.rng.Uint64N(last-first+1)), after
	case what < 8: // a suffix of another leader
		return h.remove(after, last-h.rng.Uint64N(last-first+1), last), after
	}
	h.next++
	key, value := fmt.Append(nil, h.rng.IntN(stableKeys)), fmt.Append(nil, h.next)
	after.stable[string(key)] = string(value)
	return func(s *Store) error { return s.Set(key, value) }, after
}

func (h *history) store(after content, first uint64) func(*Store) error {
	var all []*raft.Log
	for i := range 1 + h.rng.Uint64N(4) {
		h.next++
		data := append(fmt.Appendf(nil, "%d ", h.next), bytes.Repeat([]byte{'x'}, h.rng.IntN(2000))...)
		all = append(all, &raft.Log{Index: first + i, Term: uint64(h.next), Data: data})
		after.log[first+i] = string(data)
	}
	return func(s *Store) error { return s.StoreLogs(all) }
}

func (h *history) remove(after content, from, to uint64) func(*Store) error {
	for i := from; i <= to; i++ {
		delete(after.log, i)
	}
	return func(s *Store) error { return s.DeleteRange(from, to) }
}

// A power cut at any moment leaves what was acknowledged, and what was under way whole or not at all.
func TestPowerCuts(t *testing.T) {
	cuts, between := 0, 0
	for seed := range uint64(12) {
		h := newHistory(seed)
		rng := rand.New(rand.NewPCG(seed, 2))
		type moment struct {
			left    *disk
			allowed []content
		}
		var mu sync.Mutex
		var moments []moment
		allowed := []content{h.now}
		d := newDisk()
		d.before = func(string) error {
			mu.Lock()
			defer mu.Unlock()
			if rng.IntN(8) == 0 {
				moments = append(moments, moment{d.cut(rng), allowed})
			}
			return nil
		}
		s, err := openOn(d)
		require.NoError(t, err)
		for range 120 {
			call, after := h.call()
			mu.Lock()
			allowed = []content{h.now, after}
			mu.Unlock()
			require.NoError(t, call(s))
			h.now = after
			mu.Lock()
			allowed = []content{after}
			if rng.IntN(16) == 0 {
				moments = append(moments, moment{d.cut(rng), allowed})
			}
			mu.Unlock()
			require.Equal(t, after, contentOf(t, s))
		}
		require.NoError(t, s.Close())
		for i, m := range moments {
			cuts++
			if len(m.allowed) == 1 {
				between++
			}
			again, err := openOn(m.left)
			require.NoError(t, err, "seed %d, cut %d", seed, i)
			require.Contains(t, m.allowed, contentOf(t, again), "seed %d, cut %d", seed, i)
			require.NoError(t, again.Close())
		}
	}
	require.Greater(t, between, 50, "of all cuts, with nothing under way")
	require.Greater(t, cuts, 2*between)
}

// Entries whose sync has failed stay in the store if a write of the host's that needs no sync has come behind them.
// What raft then writes is the end of the log, also on the next start.
func TestWhatAFailedWriteLeftIsNotPartOfTheLog(t *testing.T) {
	d := newDisk()
	var broken atomic.Bool
	var s *Store
	d.before = func(call string) error {
		if !broken.Load() || call != "sync" {
			return nil
		}
		behind := make(chan error)
		go func() { behind <- s.db.Set([]byte("host"), nil, kv.NoSync) }()
		<-behind // an error, when the store has failed already
		return errDisk
	}
	s, err := openOn(d)
	require.NoError(t, err)
	require.NoError(t, s.StoreLogs(entries(1, 10, 1)))
	broken.Store(true)
	require.ErrorIs(t, s.StoreLogs(entries(11, 15, 1)), kv.ErrNotDurable)
	requireEnds(t, s, 1, 15)
	broken.Store(false)
	for s.StoreLogs(entries(11, 12, 2)) != nil { // until the store has resumed
	}
	requireEnds(t, s, 1, 12)
	require.Equal(t, raft.ErrLogNotFound, s.GetLog(13, new(raft.Log)))
	require.NoError(t, s.StoreLogs(entries(13, 13, 2)))
	require.NoError(t, s.Close())
	s, err = openOn(d)
	require.NoError(t, err)
	requireEnds(t, s, 1, 13)
	var got raft.Log
	require.NoError(t, s.GetLog(13, &got))
	require.Equal(t, *entry(13, 2), got)
	require.NoError(t, s.Close())
}

// Whichever read of the ends fails, they are an error or right: the store counts on them.
func TestEndsThatCannotBeRead(t *testing.T) {
	d := newDisk()
	o := &kv.Options{CacheSize: -1}
	*harness.Of(o) = harness.Harness{FS: d}
	s, err := Open("store", o)
	require.NoError(t, err)
	require.NoError(t, s.StoreLogs(entries(1, 10, 1)))
	require.NoError(t, s.db.Flush(t.Context()))
	for n, failed := 0, 1; failed > 0; n++ {
		failed = 0
		var reads atomic.Int64
		d.reading = func() error {
			if reads.Add(1) == int64(n+1) {
				failed++
				return errDisk
			}
			return nil
		}
		s.setBounds(ends{})
		if got, err := s.bounds(); err == nil {
			require.Equal(t, ends{true, true, 1, 10}, got, "read %d", n)
		} else {
			require.ErrorIs(t, err, errDisk)
		}
	}
	require.NoError(t, s.Close())
}

var errDisk = errors.New("the disk is broken")
