package kv

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
)

func beginTx(tb testing.TB, db *DB, writable bool) *Tx {
	tb.Helper()
	tx, err := db.Begin(writable)
	require.NoError(tb, err)
	return tx
}

// contents returns what a reader has, forward, and sees to it that it has the same backward.
func contents(tb testing.TB, r Reader, o *IterOptions) storetest.Model {
	tb.Helper()
	it, err := r.NewIter(o)
	require.NoError(tb, err)
	m := storetest.Model{}
	var keys []string
	for it.First(); it.Valid(); it.Next() {
		keys = append(keys, string(it.Key()))
		m[string(it.Key())] = string(it.Value())
	}
	require.NoError(tb, it.Error())
	for it.Last(); it.Valid(); it.Prev() {
		require.NotEmpty(tb, keys)
		require.Equal(tb, keys[len(keys)-1], string(it.Key()))
		keys = keys[:len(keys)-1]
	}
	require.Empty(tb, keys)
	require.NoError(tb, it.Error())
	require.NoError(tb, it.Close())
	return m
}

func TestTxReadsItsSnapshotAndItsOwnWrites(t *testing.T) {
	db := openMem(t, nil)
	for _, k := range []string{"a", "b", "c", "d"} {
		set(t, db, k, "old")
	}
	tx := beginTx(t, db, true)
	set(t, db, "e", "later")
	require.NoError(t, db.Delete([]byte("a"), NoSync))

	require.NoError(t, tx.Set([]byte("b"), []byte("mine")))
	require.NoError(t, tx.Delete([]byte("c")))
	require.NoError(t, tx.Set([]byte("f"), nil))
	require.Equal(t, storetest.Model{"a": "old", "b": "mine", "d": "old", "f": ""}, contents(t, tx, nil))
	v, err := tx.AppendGet([]byte("it is "), []byte("b"))
	require.NoError(t, err)
	require.Equal(t, "it is mine", string(v))
	v, err = tx.Get([]byte("f"))
	require.NoError(t, err)
	require.NotNil(t, v)
	_, err = tx.Get([]byte("c"))
	require.ErrorIs(t, err, ErrNotFound)
	ok, err := tx.Has([]byte("e"))
	require.NoError(t, err)
	require.False(t, ok)

	before, err := tx.NewIter(nil)
	require.NoError(t, err)
	require.NoError(t, tx.DeleteRange([]byte("a"), []byte("d")))
	require.NoError(t, tx.Set([]byte("b"), []byte("again")))
	require.Equal(t, storetest.Model{"b": "again", "d": "old", "f": ""}, contents(t, tx, nil))
	require.True(t, before.First(), "an iterator sees no later write of its transaction")
	require.Equal(t, "a", string(before.Key()))
	require.True(t, before.Next())
	require.Equal(t, "mine", string(before.Value()))
	require.NoError(t, before.Close())

	require.Equal(t, storetest.Model{"b": "old", "c": "old", "d": "old", "e": "later"}, contents(t, db, nil),
		"nobody else sees anything")
	require.ErrorIs(t, tx.Commit(nil), ErrConflict)

	tx = beginTx(t, db, true)
	require.NoError(t, tx.DeleteRange([]byte("a"), []byte("d")))
	require.NoError(t, tx.Set([]byte("b"), []byte("again")))
	require.NoError(t, tx.Commit(nil))
	require.Equal(t, storetest.Model{"b": "again", "d": "old", "e": "later"}, contents(t, db, nil))
}

func TestTxEnds(t *testing.T) {
	db := openMem(t, nil)
	set(t, db, "k", "v")
	k := []byte("k")
	for name, end := range map[string]func(tx *Tx) error{
		"Commit":           func(tx *Tx) error { return tx.Commit(Async) },
		"Discard":          (*Tx).Discard,
		"Commit of writes": func(tx *Tx) error { return errors.Join(tx.Set(k, k), tx.Commit(NoSync)) },
	} {
		tx := beginTx(t, db, true)
		it, err := tx.NewIter(nil)
		require.NoError(t, err)
		require.True(t, it.First())
		require.NoError(t, end(tx), name)
		require.NoError(t, tx.Discard(), "it does nothing")
		_, getErr := tx.Get(k)
		_, hasErr := tx.Has(k)
		_, iterErr := tx.NewIter(nil)
		for _, err := range []error{getErr, hasErr, iterErr, tx.Set(k, k), tx.Delete(k), tx.DeleteRange(k, nil),
			tx.Commit(nil)} {
			require.ErrorIs(t, err, ErrTxDone, name)
		}
		require.False(t, it.Next())
		require.ErrorIs(t, it.Error(), ErrTxDone)
		require.NoError(t, it.Close())
	}
	require.Zero(t, db.Metrics().Transactions)
	require.Zero(t, db.Metrics().Snapshots)
}

func TestTxThatOnlyReads(t *testing.T) {
	db := openMem(t, nil)
	set(t, db, "k", "v")
	tx := beginTx(t, db, false)
	for _, err := range []error{tx.Set([]byte("k"), nil), tx.Delete([]byte("k")), tx.DeleteRange(nil, nil)} {
		require.ErrorIs(t, err, ErrTxReadOnly)
	}
	require.Equal(t, storetest.Model{"k": "v"}, contents(t, tx, nil))
	set(t, db, "k", "new")
	require.Equal(t, storetest.Model{"k": "v"}, contents(t, tx, nil))
	require.NoError(t, tx.Commit(nil), "it was right when it began")

	dir := t.TempDir()
	require.NoError(t, openDir(t, dir, nil).Close())
	ro := openDir(t, dir, &Options{ReadOnly: true})
	_, err := ro.Begin(true)
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, ro.Update(func(*Tx) error { return nil }), ErrReadOnly)
	require.NoError(t, ro.View(func(tx *Tx) error {
		require.Empty(t, contents(t, tx, nil))
		return nil
	}))
	require.NoError(t, ro.Close())
}

func TestTxErrors(t *testing.T) {
	db := openMem(t, nil)
	tx := beginTx(t, db, true)
	require.ErrorIs(t, tx.Set(make([]byte, MaxKeySize+1), nil), ErrTooLarge)
	require.ErrorIs(t, tx.Set([]byte("a"), nil), ErrTooLarge, "it is kept")
	require.ErrorIs(t, tx.Commit(nil), ErrTooLarge)
	require.Empty(t, contents(t, db, nil))

	// Reads are bounded: by the next lookup, by the iterator, and by Commit.
	const limit = 4 << 10
	fill := func(tx *Tx) (err error) {
		for i := 0; err == nil && i < 1000; i++ {
			_, err = tx.Has(fmt.Appendf(nil, "key %d", i))
		}
		return err
	}
	tx = beginTx(t, db, true)
	tx.reads.Limit = limit
	require.NoError(t, tx.Set([]byte("a"), nil))
	require.ErrorIs(t, fill(tx), ErrTooLarge)
	require.ErrorIs(t, tx.Commit(nil), ErrTooLarge)
	tx = beginTx(t, db, true)
	tx.reads.Limit = limit
	it, err := tx.NewIter(nil)
	require.NoError(t, err)
	for i := range 1000 {
		it.SeekGE(fmt.Appendf(nil, "%03d", i))
	}
	require.NoError(t, it.Error(), "one range reached them all")
	require.ErrorIs(t, fill(tx), ErrTooLarge)
	require.False(t, it.First())
	require.ErrorIs(t, it.Close(), ErrTooLarge)
	require.NoError(t, tx.Discard())
	tx = beginTx(t, db, false)
	require.NoError(t, fill(tx), "who only reads need not remember")
	require.NoError(t, tx.Discard())
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Empty(t, contents(t, db, nil))
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	db := openMem(t, nil)
	oops := errors.New("oops")
	require.ErrorIs(t, db.Update(func(tx *Tx) error { return errors.Join(tx.Set([]byte("k"), nil), oops) }), oops)
	require.ErrorIs(t, db.View(func(tx *Tx) error { return tx.Set([]byte("k"), nil) }), ErrTxReadOnly)
	require.PanicsWithValue(t, "oops", func() {
		_ = db.Update(func(tx *Tx) error {
			require.NoError(t, tx.Set([]byte("k"), nil))
			panic("oops")
		})
	})
	require.PanicsWithValue(t, "oops", func() { _ = db.View(func(*Tx) error { panic("oops") }) })
	require.Empty(t, contents(t, db, nil))
	require.Zero(t, db.Metrics().Transactions)

	// A conflict in each of the first two attempts.
	attempts := 0
	require.NoError(t, db.Update(func(tx *Tx) error {
		attempts++
		_, err := tx.Has([]byte("k"))
		require.NoError(t, err)
		if attempts <= 2 {
			set(t, db, "k", "theirs")
		}
		return tx.Set([]byte("k"), []byte("mine"))
	}))
	require.Equal(t, 3, attempts)
	require.Equal(t, storetest.Model{"k": "mine"}, contents(t, db, nil))

	attempts = 0
	require.ErrorIs(t, db.Update(func(tx *Tx) error {
		attempts++
		_, err := tx.Has([]byte("k"))
		require.NoError(t, err)
		set(t, db, "k", strconv.Itoa(attempts))
		return tx.Set([]byte("k"), []byte("mine"))
	}), ErrConflict, "not for ever")
	require.Equal(t, maxAttempts, attempts)
	require.EqualValues(t, 2+maxAttempts, db.Metrics().TxConflicts)
	require.EqualValues(t, 1, db.Metrics().TxCommits)

	syncs := db.Metrics().WALSyncs
	require.NoError(t, db.Update(func(tx *Tx) error {
		return errors.Join(tx.Set([]byte("k"), nil), tx.Commit(NoSync))
	}))
	require.Equal(t, syncs, db.Metrics().WALSyncs, "fn chose another durability")
	require.NoError(t, db.Update((*Tx).Discard))
}

func TestLeakedTransactionsAreCounted(t *testing.T) {
	db, err := Open("db", &Options{InMemory: true})
	require.NoError(t, err)
	for range 3 {
		beginTx(t, db, true)
	}
	err = db.Close()
	require.ErrorIs(t, err, ErrTransactionsOpen)
	require.ErrorContains(t, err, "transactions: 3; Options.TraceOpens")
	require.NotErrorIs(t, err, ErrSnapshotsOpen, "what a transaction reads through is its own affair")
}

func TestLeakedTransactionsAreNamed(t *testing.T) {
	db, err := Open("db", &Options{InMemory: true, TraceOpens: true})
	require.NoError(t, err)
	set(t, db, "a", "1")
	leaked, reader := beginTx(t, db, true), beginTx(t, db, false)
	it, err := leaked.NewIter(nil)
	require.NoError(t, err)
	require.NoError(t, leaked.Set([]byte("b"), nil))
	err = db.Close()
	require.ErrorIs(t, err, ErrTransactionsOpen)
	require.ErrorIs(t, err, ErrIteratorsOpen)
	require.Len(t, regexp.MustCompile(`transaction \d of 2 was opened at:`).FindAllString(err.Error(), -1), 2)
	require.Regexp(t, `transaction 1 of 2 was opened at:\n\t.*DB.*Begin\n.*\n\t.*beginTx\n.*\n\t`+
		`.*TestLeakedTransactionsAreNamed\n\t\t.*tx_test\.go:\d+`, err.Error())
	require.Regexp(t, `iterator 1 of 1 was opened at:\n\t.*Tx.*NewIter\n.*\n\t.*TestLeakedTransactionsAreNamed\n`,
		err.Error())

	_, getErr := leaked.Get([]byte("b"))
	_, iterErr := reader.NewIter(nil)
	for _, err := range []error{getErr, iterErr, leaked.Set(nil, nil), leaked.Commit(nil), reader.Commit(nil)} {
		require.ErrorIs(t, err, ErrClosed)
	}
	require.ErrorIs(t, leaked.Commit(nil), ErrTxDone)
	require.False(t, it.First())
	require.NoError(t, it.Close())
	_, err = db.Begin(true)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, db.View(func(*Tx) error { return nil }), ErrClosed)
	require.ErrorIs(t, db.Update(func(*Tx) error { return nil }), ErrClosed)
}

func TestNoUpdateIsLost(t *testing.T) {
	db := openMem(t, nil)
	const writers, rounds = 8, 40
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range rounds {
				key := []byte([]string{"odd", "even"}[(w+i)%2])
				require.NoError(t, db.Update(func(tx *Tx) error {
					v, err := tx.Get(key)
					if err != nil && !errors.Is(err, ErrNotFound) {
						return err
					}
					n, _ := strconv.Atoi(string(v)) // absent: 0
					return errors.Join(tx.Set(key, strconv.AppendInt(nil, int64(n+1), 10)), tx.Commit(NoSync))
				}))
			}
		})
	}
	group.Wait()
	half := strconv.Itoa(writers * rounds / 2)
	require.Equal(t, storetest.Model{"odd": half, "even": half}, contents(t, db, nil))
	require.EqualValues(t, writers*rounds, db.Metrics().TxCommits)
}

// panickingPrefix is a function of the application that fails.
type panickingPrefix struct{}

func (panickingPrefix) Name() string                 { return "panicking" }
func (panickingPrefix) Prefix([]byte) ([]byte, bool) { panic("no prefix") }

// A transaction uses an overlay again for which no iterator could be made.
func TestAnIteratorThatIsNotMadeLeavesItsOverlay(t *testing.T) {
	t.Parallel()
	db := openMem(t, &Options{Prefix: panickingPrefix{}})
	tx := beginTx(t, db, true)
	defer func() { require.NoError(t, tx.Discard()) }()
	for range 3 {
		require.Panics(t, func() { _, _ = tx.NewIter(&IterOptions{LowerBound: []byte("a"), UpperBound: []byte("b")}) })
	}
	require.Len(t, tx.overlays, 1)
}
