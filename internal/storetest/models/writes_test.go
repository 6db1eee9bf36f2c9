package models

import (
	"bytes"
	"maps"
	"time"

	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/stretchr/testify/require"
)

// A modelWriter is a batch or a transaction.
type modelWriter interface {
	kv.Writer
	SetTTL(key, value []byte, ttl time.Duration) error
	DeletePrefix(prefix []byte) error
}

// until is a moment soon, long ago, now, or never.
func (r *modelRun) until() time.Time {
	now, soon := r.clock.Time(), r.clock.Time().Add(r.ttl())
	return []time.Time{{}, now, now.Add(-r.ttl()), time.UnixMicro(-5), soon, soon}[r.rng.IntN(6)]
}

// write does a random write, and returns what it does to the model.
func (r *modelRun) write(w modelWriter) func(modelStore) {
	k, v := r.key(), r.value()
	switch n := r.rng.IntN(20); {
	case n < 7:
		require.NoError(r.t, w.Set(k, v))
		return func(m modelStore) { m.Set(string(k), string(v)) }
	case n < 9:
		require.NoError(r.t, w.Delete(k))
		return func(m modelStore) { m.Delete(string(k)) }
	case n < 11:
		lo, hi := k, append(bytes.Clone(k), byte(r.rng.IntN(256)))
		if r.rng.IntN(10) == 0 {
			lo, hi = r.bound(), r.bound()
		}
		if r.rng.IntN(10) == 0 && len(lo) > 0 {
			hi = kv.PrefixEnd(lo)
			require.NoError(r.t, w.DeletePrefix(lo))
		} else {
			require.NoError(r.t, w.DeleteRange(lo, hi))
		}
		return func(m modelStore) { m.DeleteRange(lo, hi) }
	case n < 16:
		v = r.operand()
		require.NoError(r.t, w.Merge(k, v))
		return func(m modelStore) { m.Merge(string(k), string(v)) }
	case n < 18:
		ttl := r.ttl()
		expiry := r.expiry(ttl)
		require.NoError(r.t, w.SetTTL(k, v, ttl))
		return func(m modelStore) { m.SetTTL(string(k), string(v), expiry) }
	default:
		expiry := r.until()
		require.NoError(r.t, w.SetUntil(k, v, expiry))
		return func(m modelStore) { m.SetUntil(string(k), string(v), expiry) }
	}
}

// batch commits a batch, of which a part may come from another: appended, replayed, or
// replayed in a transaction.
func (r *modelRun) batch() {
	b, other := r.db.NewBatch(), r.db.NewBatch()
	next := maps.Clone(r.m)
	var later []func(modelStore)
	for range r.rng.IntN(20) {
		if r.rng.IntN(4) > 0 {
			r.write(b)(next)
		} else {
			later = append(later, r.write(other))
		}
	}
	for _, write := range later {
		write(next)
	}
	commit, forget := b.Commit, func() error { b.Reset(); return b.Commit(nil) }
	switch r.rng.IntN(4) {
	case 0:
		tx := stores.Begin(r.t, r.db, true)
		require.NoError(r.t, b.Replay(tx))
		require.NoError(r.t, other.Replay(tx))
		commit, forget = tx.Commit, tx.Discard
	case 1:
		require.NoError(r.t, other.Replay(b))
	default:
		require.NoError(r.t, b.Append(other))
	}
	if r.rng.IntN(10) == 0 {
		require.NoError(r.t, forget())
		return
	}
	require.NoError(r.t, commit(r.durability()))
	r.m = next
}
