package kv

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// Operands of a transaction are combined with what is under them, in the store or its own.
func TestTxReadsItsOwnOperands(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Merger: modelMerger, Clock: clock.Time})
	for _, k := range []string{"deleted", "gone", "set", "store"} {
		set(t, db, k, "old")
	}
	require.NoError(t, db.Merge([]byte("store"), []byte("x"), nil))
	tx := beginTx(t, db, true)
	// What others write later is between the own operands and what is seen under them.
	for range manyVersions {
		require.NoError(t, db.Merge([]byte("store"), []byte("later"), nil))
		set(t, db, "new", "later")
	}
	require.NoError(t, errors.Join(
		tx.Merge([]byte("store"), []byte("1")), tx.Merge([]byte("store"), []byte("2")),
		tx.Merge([]byte("new"), []byte("3")),
		tx.Delete([]byte("deleted")), tx.Merge([]byte("deleted"), []byte("4")),
		tx.DeleteRange([]byte("g"), []byte("h")), tx.Merge([]byte("gone"), []byte("5")),
		tx.Set([]byte("set"), []byte("own")), tx.Merge([]byte("set"), []byte("6")),
		tx.SetTTL([]byte("ttl"), []byte("own"), time.Second), tx.Merge([]byte("ttl"), []byte("7")),
		tx.SetTTL([]byte("ended"), []byte("own"), time.Second),
		tx.Merge([]byte("again"), []byte("x")), tx.DeleteRange([]byte("ag"), []byte("ah")),
		tx.Merge([]byte("again"), []byte("9")),
		tx.Merge([]byte("hidden"), []byte("8")), tx.DeleteRange([]byte("hid"), []byte("hie"))))
	want := storetest.Model{"store": "old,x,1,2", "new": "3", "deleted": "4", "gone": "5", "set": "own,6",
		"ttl":   "own,7",
		"ended": "own", "again": "9"}
	for range 2 {
		require.Equal(t, want, contents(t, tx, nil))
		var keys [][]byte
		for k, v := range want {
			requireValue(t, tx, k, v)
			require.True(t, has(t, tx, k))
			keys = append(keys, []byte(k))
		}
		values, err := tx.MultiGet(append(keys, []byte("hidden"), []byte("nowhere")))
		require.NoError(t, err)
		for i, k := range keys {
			require.Equal(t, want[string(k)], string(values[i]), "%s", k)
		}
		require.Nil(t, values[len(keys)])
		require.Nil(t, values[len(keys)+1])
		requireAbsent(t, tx, "hidden")
		clock.Advance(time.Second)
		want["ttl"] = "7"
		delete(want, "ended")
	}
	dst, err := tx.AppendGet([]byte("it is "), []byte("set"))
	require.NoError(t, err)
	require.Equal(t, "it is own,6", string(dst))
	require.ErrorIs(t, tx.Commit(nil), ErrConflict, "it has read what others wrote")
}

// An iterator does not see operands that come after it, on either way.
func TestAnIteratorOfATxSeesNoLaterOperand(t *testing.T) {
	db := openMem(t, &Options{Merger: modelMerger})
	set(t, db, "k", "old")
	tx := beginTx(t, db, true)
	require.NoError(t, tx.Merge([]byte("k"), []byte("1")))
	it, err := tx.NewIter(nil)
	require.NoError(t, err)
	for range manyVersions {
		require.NoError(t, tx.Merge([]byte("k"), []byte("later")))
		require.NoError(t, db.Merge([]byte("k"), []byte("others"), NoSync))
	}
	for _, move := range []func() bool{it.First, it.Last, it.First} {
		require.True(t, move())
		require.Equal(t, "old,1", string(it.Value()))
	}
	require.False(t, it.Next())
	require.NoError(t, it.Close())
	require.NoError(t, tx.Discard())
}

// A blind merge reads nothing; a Get or a scan over it does, Has does not.
func TestWhatATxWithOperandsReads(t *testing.T) {
	get := func(t *testing.T, tx *Tx) {
		_, err := tx.Get([]byte("k"))
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		before, after func(*testing.T, *Tx)
		conflicts     bool
	}{
		"blind": {},
		"Get":   {after: get, conflicts: true},
		"MultiGet": {conflicts: true, after: func(t *testing.T, tx *Tx) {
			_, err := tx.MultiGet([][]byte{[]byte("k")})
			require.NoError(t, err)
		}},
		"scan": {after: moves("", "", "F"), conflicts: true},
		"Has": {after: func(t *testing.T, tx *Tx) {
			require.True(t, has(t, tx, "k"), "whatever is under the operand")
		}},
		"Get of another": {after: lookUp("l")},
		"Get over own Set": {after: get, before: func(t *testing.T, tx *Tx) {
			require.NoError(t, tx.Set([]byte("k"), nil))
		}},
		"Get over own Delete": {after: get, before: func(t *testing.T, tx *Tx) {
			require.NoError(t, tx.Delete([]byte("k")))
		}},
		"Get over own DeleteRange": {after: get, before: func(t *testing.T, tx *Tx) {
			require.NoError(t, tx.DeleteRange([]byte("k"), []byte("l")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			db := openMem(t, &Options{Merger: Append(",")})
			tx := beginTx(t, db, true)
			if c.before != nil {
				c.before(t, tx)
			}
			require.NoError(t, tx.Merge([]byte("k"), []byte("mine")))
			if c.after != nil {
				c.after(t, tx)
			}
			require.NoError(t, db.Merge([]byte("k"), []byte("theirs"), nil))
			if err := tx.Commit(nil); c.conflicts {
				require.ErrorIs(t, err, ErrConflict)
				requireValue(t, db, "k", "theirs")
			} else {
				require.NoError(t, err)
			}
			if name == "blind" {
				requireValue(t, db, "k", "theirs,mine")
			}
		})
	}
}

// Transactions that merge into one key do not conflict, and lose nothing.
func TestBlindMergesDoNotConflict(t *testing.T) {
	db := openMem(t, &Options{Merger: Int64Add})
	const writers, rounds = 6, 60
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range rounds {
				tx, err := db.Begin(true)
				if err == nil {
					err = errors.Join(tx.Merge([]byte("sum"), AppendInt64(nil, 1)),
						tx.Set([]byte(strconv.Itoa(w)), AppendInt64(nil, int64(i))), tx.Commit(NoSync))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	v, err := db.Get([]byte("sum"))
	require.NoError(t, err)
	n, err := Int64(v)
	require.NoError(t, err)
	require.EqualValues(t, writers*rounds, n)
	require.Zero(t, db.Metrics().TxConflicts)
}

func TestErrorsOfTxMergeAndSetTTL(t *testing.T) {
	db := openMem(t, nil)
	tx := beginTx(t, db, true)
	require.ErrorIs(t, tx.Merge([]byte("k"), nil), ErrNoMerger)
	require.ErrorIs(t, tx.Commit(nil), ErrNoMerger)
	for _, err := range []error{tx.Merge([]byte("k"), nil), tx.SetTTL([]byte("k"), nil, time.Hour),
		tx.SetUntil([]byte("k"), nil, time.Time{})} {
		require.ErrorIs(t, err, ErrTxDone)
	}
	tx = beginTx(t, db, true)
	require.ErrorIs(t, tx.SetTTL([]byte("k"), nil, 0), ErrInvalidTTL)
	require.ErrorIs(t, tx.Commit(nil), ErrInvalidTTL)
	tx = beginTx(t, db, false)
	for _, err := range []error{tx.Merge([]byte("k"), nil), tx.SetTTL([]byte("k"), nil, time.Hour),
		tx.SetUntil([]byte("k"), nil, time.Time{})} {
		require.ErrorIs(t, err, ErrTxReadOnly)
	}
	require.NoError(t, tx.Discard())

	// Operands that cannot be combined are an error of reads, and are kept.
	db = openMem(t, &Options{Merger: NewMerger("counters", Int64Add.Merge)})
	set(t, db, "k", "no number")
	tx = beginTx(t, db, true)
	require.NoError(t, tx.Merge([]byte("k"), AppendInt64(nil, 1)))
	_, err := tx.Get([]byte("k"))
	require.ErrorIs(t, err, ErrMergeFailed)
	_, err = tx.MultiGet([][]byte{[]byte("k")})
	require.ErrorIs(t, err, ErrMergeFailed)
	it, err := tx.NewIter(nil)
	require.NoError(t, err)
	require.False(t, it.First())
	require.ErrorIs(t, it.Close(), ErrMergeFailed)
	require.NoError(t, tx.Delete([]byte("k")))
	require.NoError(t, tx.Merge([]byte("k"), []byte("none either")))
	_, err = tx.Get([]byte("k"))
	require.NoError(t, err, "one operand alone is the value")
	require.NoError(t, tx.Merge([]byte("k"), AppendInt64(nil, 1)))
	_, err = tx.MultiGet([][]byte{[]byte("k")})
	require.ErrorIs(t, err, ErrMergeFailed)
	require.NoError(t, tx.Discard())
}

// A merger that makes nothing of its operands makes an empty value, not an absent one.
func TestTxOperandsThatComeToNothing(t *testing.T) {
	db := openMem(t, &Options{Merger: NewMerger("nothing", func(_, _, _ []byte) ([]byte, error) { return nil, nil })})
	set(t, db, "store", "old")
	tx := beginTx(t, db, true)
	require.NoError(t, errors.Join(tx.Set([]byte("own"), nil), tx.Merge([]byte("own"), nil),
		tx.Merge([]byte("store"), nil)))
	for _, k := range []string{"own", "store"} {
		requireValue(t, tx, k, "")
		values, err := tx.MultiGet([][]byte{[]byte(k)})
		require.NoError(t, err)
		require.NotNil(t, values[0])
		require.Empty(t, values[0])
	}
	require.NoError(t, tx.Discard())
}

// A value under operands of the transaction that cannot be read is an error of its key, as without them.
func TestTxMultiGetNamesTheKeyUnderOperands(t *testing.T) {
	dir, o := t.TempDir(), &Options{Merger: modelMerger, Compression: sstable.NoCompression}
	db := openDir(t, dir, o)
	set(t, db, "k", "old")
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	rewrite(t, only(t, dir, manifest.FileTable), flip(1))
	db = openDir(t, dir, o)
	tx := beginTx(t, db, true)
	require.NoError(t, tx.Merge([]byte("k"), []byte("x")))
	_, err := tx.MultiGet([][]byte{[]byte("absent"), []byte("k")})
	require.ErrorIs(t, err, ErrCorruption)
	damaged, ok := errors.AsType[*ValueError](err)
	require.True(t, ok)
	require.Equal(t, "k", string(damaged.Key))
	require.NoError(t, tx.Discard())
	require.NoError(t, db.Close())
}
