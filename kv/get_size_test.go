package kv

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// requireSize requires that a key has a value of a size, until a moment; the zero Time is never.
func requireSize(tb testing.TB, r Reader, key string, size int, until time.Time) {
	tb.Helper()
	got, err := r.GetSize([]byte(key))
	require.NoError(tb, err, key)
	require.Equal(tb, size, got, key)
	expiry, err := r.(loopReader).Expiry([]byte(key))
	require.NoError(tb, err, key)
	require.True(tb, until.Equal(expiry), "%s: %v and not %v", key, expiry, until)
}

// requireNoSize requires that a key is not there.
func requireNoSize(tb testing.TB, r Reader, key string) {
	tb.Helper()
	size, err := r.GetSize([]byte(key))
	require.ErrorIs(tb, err, ErrNotFound, key)
	require.Zero(tb, size)
	expiry, err := r.(loopReader).Expiry([]byte(key))
	require.ErrorIs(tb, err, ErrNotFound, key)
	require.True(tb, expiry.IsZero())
}

// writeSizes writes values of all kinds, and requireSizes says what a reader is told of them.
func writeSizes(tb testing.TB, db *DB) {
	tb.Helper()
	set(tb, db, "empty", "")
	set(tb, db, "long", strings.Repeat("x", 5000))
	set(tb, db, "hidden", "x")
	set(tb, db, "covered", "x")
	require.NoError(tb, db.Delete([]byte("hidden"), NoSync))
	require.NoError(tb, db.DeleteRange([]byte("cover"), []byte("covered2"), NoSync))
	require.NoError(tb, db.SetTTL([]byte("minute"), []byte("x"), time.Minute, NoSync))
	require.NoError(tb, db.SetTTL([]byte("minute, empty"), nil, time.Minute, NoSync))
	require.NoError(tb, db.SetTTL([]byte("minute, long"), []byte(strings.Repeat("x", 5000)), time.Minute, NoSync))
	require.NoError(tb, db.SetTTL([]byte("merged minute"), []byte("ab"), time.Minute, NoSync))
	set(tb, db, "merged", "ab")
	for range 20 { // enough for a fold
		for _, key := range []string{"merged", "merged minute", "operands"} {
			require.NoError(tb, db.Merge([]byte(key), []byte("c"), NoSync))
		}
	}
}

func requireSizes(tb testing.TB, r Reader, written time.Time, expired bool) {
	tb.Helper()
	minute := written.Add(time.Minute)
	requireSize(tb, r, "empty", 0, time.Time{})
	requireSize(tb, r, "long", 5000, time.Time{})
	requireSize(tb, r, "merged", 2+20*2, time.Time{})
	requireSize(tb, r, "operands", 19*2+1, time.Time{})
	for _, key := range []string{"hidden", "covered", "never", ""} {
		requireNoSize(tb, r, key)
	}
	for key, size := range map[string]int{"minute": 1, "minute, empty": 0, "minute, long": 5000} {
		if expired {
			requireNoSize(tb, r, key)
		} else {
			requireSize(tb, r, key, size, minute)
		}
	}
	if expired { // what was merged since is left
		requireSize(tb, r, "merged minute", 19*2+1, time.Time{})
	} else {
		requireSize(tb, r, "merged minute", 2+20*2, time.Time{})
	}
}

// GetSize and Expiry tell the same in all places, to all readers, before and after the moment.
func TestGetSizeEverywhere(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"cached":              {},
		"without a cache":     {CacheSize: -1},
		"memory-mapped":       {Compression: sstable.NoCompression, MemoryMap: true},
		"values over blocks":  {BlockSize: 64},
		"one block for all":   {BlockSize: 1 << 20},
		"filters of prefixes": {Prefix: mustParsePrefix("fixed:3")},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &storetest.Clock{}
			fs := vfs.NewMem()
			o.Clock, o.Merger, o.L0CompactionThreshold, o.harness.FS = clock.Time, modelMerger, 50, fs
			dir := "db"
			if o.MemoryMap {
				o.harness.FS, dir = nil, t.TempDir()
			}
			db := openDir(t, dir, &o)
			check := func(expired bool, written time.Time) {
				s := db.NewSnapshot()
				tx, err := db.Begin(true)
				require.NoError(t, err)
				view, err := OpenReadOnly(dir, &o)
				require.NoError(t, err)
				viewed, err := view.Begin(false)
				require.NoError(t, err)
				past := view.NewSnapshot()
				for _, r := range []Reader{db, s, tx, view, viewed, past} {
					requireSizes(t, r, written, expired)
				}
				require.NoError(t, errors.Join(s.Close(), tx.Discard(), viewed.Discard(), past.Close(), view.Close()))
			}
			for _, place := range []func() error{
				func() error { return nil }, func() error { return db.Flush(t.Context()) },
				func() error { return db.Compact(t.Context(), nil, nil) },
			} {
				require.NoError(t, db.DeleteRange(nil, nil, NoSync))
				writeSizes(t, db)
				written := clock.Time()
				require.NoError(t, place())
				check(false, written)
				clock.Advance(time.Minute - time.Microsecond)
				check(false, written)
				clock.Advance(time.Microsecond)
				check(true, written)
			}
			require.NoError(t, db.Close())
		})
	}
}

func mustParsePrefix(name string) filterpolicy.Prefix {
	p, err := filterpolicy.ParsePrefix(name)
	if err != nil {
		panic(err)
	}
	return p
}

// A transaction is told of its own writes, of what lies under its operands, and of nothing that was written
// since; what its own writes tell alone does not count as read.
func TestGetSizeInATransaction(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time, Merger: modelMerger})
	minute := clock.Time().Add(time.Minute)
	for _, key := range []string{"value", "merged", "deleted", "range", "replaced", "minute", "over"} {
		require.NoError(t, db.SetTTL([]byte(key), []byte("12345"), time.Minute, NoSync))
	}
	tx := beginTx(t, db, true)
	b := &tx.writes.batch
	require.NoError(t, b.Merge([]byte("merged"), []byte("678")))
	require.NoError(t, b.Delete([]byte("deleted")))
	require.NoError(t, b.DeleteRange([]byte("range"), []byte("range0")))
	require.NoError(t, b.Merge([]byte("range+"), []byte("678")))
	require.NoError(t, b.Set([]byte("replaced"), nil))
	require.NoError(t, b.SetTTL([]byte("minute"), []byte("12"), 2*time.Minute))
	require.NoError(t, b.SetTTL([]byte("over"), []byte("12"), 2*time.Minute))
	require.NoError(t, b.Merge([]byte("over"), []byte("3")))
	require.NoError(t, b.Merge([]byte("only"), []byte("3")))
	for range 2 {
		requireSize(t, tx, "value", 5, minute)
		requireSize(t, tx, "merged", 9, time.Time{})
		requireNoSize(t, tx, "deleted")
		requireNoSize(t, tx, "range")
		requireSize(t, tx, "range+", 3, time.Time{})
		requireSize(t, tx, "replaced", 0, time.Time{})
		requireSize(t, tx, "minute", 2, minute.Add(time.Minute))
		requireSize(t, tx, "over", 4, time.Time{})
		requireSize(t, tx, "only", 1, time.Time{})
		for _, key := range []string{"value", "merged", "only"} {
			set(t, db, key, "what others write later")
		}
	}
	clock.Advance(time.Minute)
	requireNoSize(t, tx, "value")
	requireSize(t, tx, "merged", 3, time.Time{})
	requireSize(t, tx, "minute", 2, minute.Add(time.Minute))
	clock.Advance(time.Minute)
	requireNoSize(t, tx, "minute")
	requireSize(t, tx, "over", 1, time.Time{})
	require.NoError(t, tx.Discard())
	_, err := tx.GetSize([]byte("only"))
	require.ErrorIs(t, err, ErrTxDone)
	_, err = tx.Expiry([]byte("only"))
	require.ErrorIs(t, err, ErrTxDone)
}

// A key whose size or expiry a transaction was told counts as read, unless its own writes told it.
func TestGetSizeIsARead(t *testing.T) {
	for name, ask := range map[string]func(tx *Tx) error{
		"GetSize": func(tx *Tx) error { _, err := tx.GetSize([]byte("k")); return err },
		"Expiry":  func(tx *Tx) error { _, err := tx.Expiry([]byte("k")); return err },
	} {
		for _, own := range []bool{false, true} {
			db := openMem(t, nil)
			tx := beginTx(t, db, true)
			require.NoError(t, tx.Set([]byte("other"), nil))
			if own {
				require.NoError(t, tx.Set([]byte("k"), nil))
				require.NoError(t, ask(tx))
			} else {
				require.ErrorIs(t, ask(tx), ErrNotFound)
			}
			set(t, db, "k", "v")
			if err := tx.Commit(nil); own {
				require.NoError(t, err, name)
			} else {
				require.ErrorIs(t, err, ErrConflict, name)
			}
		}
	}
}

// GetSize fails where Get would; Expiry and Has need no merger.
func TestGetSizeOfOperandsThatCannotBeCombined(t *testing.T) {
	fs := vfs.NewMem()
	failing := NewMerger("failing", func(_, _, _ []byte) ([]byte, error) { return nil, errors.New("no") })
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: fs}, Merger: failing})
	set(t, db, "k", "v")
	require.NoError(t, db.Merge([]byte("k"), []byte("v"), NoSync))
	for range 2 {
		_, err := db.GetSize([]byte("k"))
		require.ErrorIs(t, err, ErrMergeFailed)
		expiry, err := db.Expiry([]byte("k"))
		require.NoError(t, err)
		require.Zero(t, expiry)
		require.NoError(t, db.Flush(t.Context()))
	}
	require.NoError(t, db.Close())
	db = openDir(t, "db", &Options{harness: harness.Harness{FS: fs}})
	_, err := db.GetSize([]byte("k"))
	require.ErrorIs(t, err, ErrNoMerger)
	_, err = db.Expiry([]byte("k"))
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func TestGetSizeOfClosedStores(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	set(t, db, "k", "v")
	s, closed := db.NewSnapshot(), db.NewSnapshot()
	require.NoError(t, closed.Close())
	tx, err := db.Begin(true)
	require.NoError(t, err)
	for i, r := range []loopReader{closed, db, s, tx} {
		if i == 1 {
			require.ErrorIs(t, db.Close(), ErrSnapshotsOpen)
		}
		_, err := r.GetSize([]byte("k"))
		require.ErrorIs(t, err, ErrClosed, "%T", r)
		_, err = r.Expiry([]byte("k"))
		require.ErrorIs(t, err, ErrClosed, "%T", r)
	}
	require.NoError(t, errors.Join(s.Close(), tx.Discard()))
}

// GetSize is counted as the lookup that it is.
func TestGetSizeIsCounted(t *testing.T) {
	db := openMem(t, nil)
	for i := range 100 {
		set(t, db, strconv.Itoa(i), "value")
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	before := db.Metrics()
	for i := range 100 {
		requireSize(t, db, strconv.Itoa(i), 5, time.Time{})
	}
	m := db.Metrics()
	require.EqualValues(t, 200, m.Gets-before.Gets)
	require.EqualValues(t, 200, m.Lookup().Hits-before.Lookup().Hits)
	checkIdentities(t, m)
}
