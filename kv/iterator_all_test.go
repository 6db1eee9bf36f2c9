package kv

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// loopStore is a store with keys a to e, some in a table and some in memory.
func loopStore(t *testing.T) *DB {
	t.Helper()
	db := openMem(t, nil)
	for i, k := range []string{"a", "b", "c", "d", "e"} {
		set(t, db, k, "value of "+k)
		if i == 2 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	}
	return db
}

// A loopReader is a DB, a Snapshot or a Tx, with all that they share.
type loopReader interface {
	Reader
	Expiry(key []byte) (time.Time, error)
	All(o *IterOptions, err *error) iter.Seq2[[]byte, []byte]
	Backward(o *IterOptions, err *error) iter.Seq2[[]byte, []byte]
}

var errAtFirst = errors.New("an error of before the loop")

// directions are the ways a loop may go, with the keys of loopStore that it comes to.
func directions(r loopReader, o *IterOptions, err *error) map[string]func(func(k, v []byte) bool) {
	return map[string]func(func(k, v []byte) bool){"abcde": r.All(o, err), "edcba": r.Backward(o, err)}
}

// A loop closes its iterator however it ends, and may be run again.
func TestAllClosesItsIterator(t *testing.T) {
	db := loopStore(t)
	err := errAtFirst
	for want, seq := range directions(db, nil, &err) {
		require.Zero(t, db.Metrics().Iterators, "none is open before a loop")
		for range 2 {
			var got []byte
			err = errAtFirst
			for k, v := range seq {
				require.Equal(t, "value of "+string(k), string(v))
				require.EqualValues(t, 1, db.Metrics().Iterators)
				got = append(got, k...)
			}
			require.NoError(t, err)
			require.Equal(t, want, string(got))
			require.Zero(t, db.Metrics().Iterators)
		}
		for k := range seq {
			require.Equal(t, want[:1], string(k))
			break
		}
		require.NoError(t, err)
		require.Zero(t, db.Metrics().Iterators, "break")
		require.PanicsWithValue(t, "of the body", func() {
			for range seq {
				panic("of the body")
			}
		})
		require.Zero(t, db.Metrics().Iterators, "panic")
		func() {
			for range seq {
				return
			}
		}()
		require.Zero(t, db.Metrics().Iterators, "return")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range seq {
				runtime.Goexit()
			}
		}()
		<-ended
		require.Zero(t, db.Metrics().Iterators, "the end of the goroutine")
	}
}

// A loop sees the store as of its beginning, and reads its options then.
func TestAllBeginsWithTheLoop(t *testing.T) {
	db := loopStore(t)
	var err error
	o := &IterOptions{}
	seq := db.All(o, &err)
	set(t, db, "bb", "")
	o.UpperBound = []byte("cc")
	var got []byte
	for k := range seq {
		got = append(got, k...)
		set(t, db, "bbb", "")
		require.NoError(t, db.Delete([]byte("c"), NoSync))
	}
	require.NoError(t, err)
	require.Equal(t, "abbbc", string(got))
}

func TestAllPanicsWithoutAPlaceForTheError(t *testing.T) {
	db := loopStore(t)
	s := db.NewSnapshot()
	tx := beginTx(t, db, false)
	for _, r := range []loopReader{db, s, tx} {
		const want = "siftkv: All and Backward need a place for an error: err is nil"
		require.PanicsWithValue(t, want, func() { r.All(nil, nil) }, "%T", r)
		require.PanicsWithValue(t, want, func() { r.Backward(nil, nil) }, "%T", r)
	}
	require.NoError(t, errors.Join(s.Close(), tx.Discard()))
}

// Loops within each other go their own ways, those of one sequence too.
func TestAllWithinAll(t *testing.T) {
	db := loopStore(t)
	var outer, inner error
	seq := db.All(&IterOptions{UpperBound: []byte("c")}, &outer)
	var got []string
	for k := range seq {
		for l := range db.Backward(&IterOptions{LowerBound: []byte("d")}, &inner) {
			got = append(got, string(k)+string(l))
		}
		require.NoError(t, inner)
		for l := range seq {
			got = append(got, string(k)+string(l))
		}
	}
	require.NoError(t, outer)
	require.Equal(t, []string{"ae", "ad", "aa", "ab", "be", "bd", "ba", "bb"}, got)
	require.Zero(t, db.Metrics().Iterators)
}

// What the body stores in the error stays there, and what fails in the loop is not lost.
func TestAllKeepsTheErrorOfItsBody(t *testing.T) {
	db := loopStore(t)
	own := errors.New("of the body")
	for range 2 {
		var err error
		for range db.All(nil, &err) {
			err = own
			break
		}
		require.ErrorIs(t, err, own)
		for k := range db.All(nil, &err) {
			if string(k) == "a" {
				require.NoError(t, err, "a loop begins without one")
				err = own
			}
		}
		require.ErrorIs(t, err, own)
	}
}

// A closed store, snapshot or transaction has no entries, and says so.
func TestAllOfWhatIsClosed(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	set(t, db, "k", "v")
	s := db.NewSnapshot()
	tx, err := db.Begin(true)
	require.NoError(t, err)
	ended, err := db.Begin(true)
	require.NoError(t, err)
	require.NoError(t, ended.Discard())
	require.NoError(t, s.Close())
	require.Error(t, db.Close(), "a transaction is open")
	for _, c := range []struct {
		r    loopReader
		want error
	}{{db, ErrClosed}, {s, ErrClosed}, {tx, ErrClosed}, {ended, ErrTxDone}} {
		var err error
		for want, seq := range directions(c.r, nil, &err) {
			err = nil
			for range seq {
				t.Fatal("an entry", want)
			}
			require.ErrorIs(t, err, c.want, "%T", c.r)
		}
	}
	require.NoError(t, tx.Discard())
}

// What is closed or ended in the middle of a loop ends it at the next step, unless it outlives that.
func TestAllWhoseStoreIsClosedMeanwhile(t *testing.T) {
	for _, backward := range []bool{false, true} {
		run := func(r loopReader, middle func()) (got string, err error) {
			seq := r.All(nil, &err)
			if backward {
				seq = r.Backward(nil, &err)
			}
			for k := range seq {
				if got += string(k); len(got) == 2 {
					middle()
				}
			}
			return got, err
		}
		all, two := "abcde", "ab"
		if backward {
			all, two = "edcba", "ed"
		}
		db := loopStore(t)
		got, err := run(db, func() { require.ErrorIs(t, db.Close(), ErrIteratorsOpen) })
		require.ErrorIs(t, err, ErrClosed)
		require.Equal(t, two, got)

		db = loopStore(t)
		s := db.NewSnapshot()
		got, err = run(s, func() { require.NoError(t, s.Close()) })
		require.NoError(t, err)
		require.Equal(t, all, got)

		tx := beginTx(t, db, true)
		got, err = run(tx, func() { require.NoError(t, tx.Discard()) })
		require.ErrorIs(t, err, ErrTxDone)
		require.Equal(t, two, got)
		require.Zero(t, db.Metrics().Iterators)
	}
	db := loopStore(t)
	var err error
	for range db.All(nil, &err) {
		require.Error(t, db.Close())
		break
	}
	require.NoError(t, err, "nothing failed that the loop wanted")
}

// A loop in a transaction sees its writes, not those of its body, and counts as read what it came to.
func TestAllInATransaction(t *testing.T) {
	for _, most := range []int{2, 100} {
		db := loopStore(t)
		tx := beginTx(t, db, true)
		require.NoError(t, tx.Set([]byte("aa"), []byte("own")))
		require.NoError(t, tx.Delete([]byte("b")))
		var got []string
		var err error
		for k := range tx.All(nil, &err) {
			require.NoError(t, tx.Set(append(bytes.Clone(k), 'x'), nil))
			if got = append(got, string(k)); len(got) == most {
				break
			}
		}
		require.NoError(t, err)
		set(t, db, "d", "of others")
		if most == 2 {
			require.Equal(t, []string{"a", "aa"}, got)
			require.NoError(t, tx.Commit(nil), "d is behind the break")
		} else {
			require.Equal(t, []string{"a", "aa", "c", "d", "e"}, got)
			require.ErrorIs(t, tx.Commit(nil), ErrConflict)
		}
	}
}

// Keys and values are those of an iterator, which moves on: clones stay.
func TestAllGivesSlicesOfTheMoment(t *testing.T) {
	db := loopStore(t)
	var err error
	var keys [][]byte
	for k, v := range db.All(nil, &err) {
		keys = append(keys, bytes.Clone(k))
		require.True(t, bytes.HasSuffix(v, k))
	}
	require.NoError(t, err)
	require.Equal(t, "[a b c d e]", fmt.Sprintf("%s", keys))
	require.True(t, slices.IsSortedFunc(keys, bytes.Compare))
}
