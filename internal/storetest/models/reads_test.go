package models

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/stretchr/testify/require"
)

// A loopReader is a DB, a Snapshot or a Tx, with all that they share.
type loopReader interface {
	kv.Reader
	Expiry(key []byte) (time.Time, error)
	All(o *kv.IterOptions, err *error) iter.Seq2[[]byte, []byte]
	Backward(o *kv.IterOptions, err *error) iter.Seq2[[]byte, []byte]
}

// checkWithoutValue holds GetSize and Expiry of a key against the model.
func (r *modelRun) checkWithoutValue(db kv.Reader, m modelStore, k []byte) {
	want, present := m.Get(string(k), r.clock.Now())
	size, err := db.GetSize(k)
	expiry, expiryErr := db.(loopReader).Expiry(k)
	if !present {
		require.ErrorIs(r.t, err, kv.ErrNotFound, "%q", k)
		require.ErrorIs(r.t, expiryErr, kv.ErrNotFound, "%q", k)
		return
	}
	require.NoError(r.t, err, "%q", k)
	require.Equal(r.t, len(want), size, "%q", k)
	require.NoError(r.t, expiryErr, "%q", k)
	require.Equal(r.t, m.Expiry(string(k)), expiry, "%q", k)
}

// drawKinds draws the options of an iterator that are no bounds.
func (r *modelRun) drawKinds(o *kv.IterOptions) {
	o.KeysOnly = r.rng.IntN(3) == 0
	switch r.rng.IntN(8) {
	case 0:
		o.Prefix = []byte([]string{"", "user/", "user/0", "zz", "0", "\xff", "\xff\xff"}[r.rng.IntN(7)])
	case 1:
		o.Prefix = r.key()
	}
}

// requireEntry holds the entry that the iterator is on against the model.
func (i *modelIter) requireEntry(r *modelRun) {
	want, _ := i.m.Get(i.at, r.clock.Now())
	operands := len(i.m[i.at].Operands) > 0
	storetest.RequireValueOf(r.t, i.it, i.bounds.KeysOnly, want, operands)
	require.Equal(r.t, i.m.Expiry(i.at), i.it.Expiry(), "%q", i.at)
}

// checkLoops compares loops over a whole reader, some of them left early, and what it says of each key.
func (r *modelRun) checkLoops(db loopReader, m modelStore) {
	all := m.At(r.clock.Now())
	o := &kv.IterOptions{KeysOnly: r.rng.IntN(4) == 0, Prefix: []byte([]string{"", "user/", "zz"}[r.rng.IntN(3)])}
	keys := slices.DeleteFunc(all.Keys(), func(k string) bool { return !strings.HasPrefix(k, string(o.Prefix)) })
	most := 1 + r.rng.IntN(2*len(keys)+1)
	for _, backward := range []bool{false, true} {
		err := errAtFirst
		seq := db.All(o, &err)
		if backward {
			seq = db.Backward(o, &err)
			slices.Reverse(keys)
		}
		n := 0
		for k, v := range seq {
			require.Less(r.t, n, len(keys))
			require.Equal(r.t, keys[n], string(k))
			if o.KeysOnly {
				require.Nil(r.t, v)
			} else {
				require.Equal(r.t, all[keys[n]], string(v))
			}
			if r.rng.IntN(16) == 0 {
				r.checkWithoutValue(db, m, k)
			}
			if n++; n == most {
				break
			}
		}
		require.NoError(r.t, err)
		require.Equal(r.t, min(most, len(keys)), n)
	}
}

// checkTx reads in a transaction that has written keys in all ways, and discards it.
func (r *modelRun) checkTx() {
	tx, err := r.db.Begin(true)
	require.NoError(r.t, err)
	m := maps.Clone(r.m)
	for range r.rng.IntN(12) {
		k := r.key()
		b := tx
		switch r.rng.IntN(6) {
		case 0:
			require.NoError(r.t, b.Delete(k))
			m.Delete(string(k))
		case 1:
			hi := append(bytes.Clone(k), byte(r.rng.IntN(256)))
			require.NoError(r.t, b.DeleteRange(k, hi))
			m.DeleteRange(k, hi)
		case 2:
			v, ttl := r.value(), r.ttl()
			require.NoError(r.t, b.SetTTL(k, v, ttl))
			m.SetTTL(string(k), string(v), r.expiry(ttl))
		case 3, 4:
			v := r.operand()
			require.NoError(r.t, b.Merge(k, v))
			m.Merge(string(k), string(v))
		default:
			v := r.value()
			require.NoError(r.t, b.Set(k, v))
			m.Set(string(k), string(v))
		}
	}
	for range 10 {
		r.checkWithoutValue(tx, m, r.key())
	}
	i := r.iterOf(tx, m)
	for range 20 {
		i.move(r)
	}
	require.NoError(r.t, i.it.Close())
	r.checkLoops(tx, m)
	require.NoError(r.t, tx.Discard())
}

var errAtFirst = errors.New("an error of before the loop")
