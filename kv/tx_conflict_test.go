package kv

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/storetest"
)

// A conflictCase is what a transaction reads beside its write of "w", what is
// written meanwhile, and whether that is a conflict. At first there are c, e and g.
type conflictCase struct {
	name     string
	read     func(t *testing.T, tx *Tx)
	write    func(b *Batch) error
	conflict bool
}

func lookUp(keys ...string) func(*testing.T, *Tx) {
	return func(t *testing.T, tx *Tx) {
		for _, k := range keys {
			_, err := tx.Has([]byte(k))
			require.NoError(t, err)
		}
	}
}

// moves takes an iterator through steps within [lo, hi), where "" is no bound: F, L, n and p are First, Last, Next and
// Prev, any other is SeekGE, or after < SeekLT. The iterator stays open if they end with a dot.
func moves(lo, hi, steps string) func(*testing.T, *Tx) {
	bound := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	return func(t *testing.T, tx *Tx) {
		it, err := tx.NewIter(&IterOptions{LowerBound: bound(lo), UpperBound: bound(hi)})
		require.NoError(t, err)
		before := false
		for _, m := range []byte(steps) {
			switch {
			case m == '.':
				t.Cleanup(func() { require.NoError(t, it.Close()) })
				return
			case m == '<':
				before = true
				continue
			case m == 'F':
				it.First()
			case m == 'L':
				it.Last()
			case m == 'n':
				it.Next()
			case m == 'p':
				it.Prev()
			case before:
				it.SeekLT([]byte{m})
			default:
				it.SeekGE([]byte{m})
			}
			before = false
		}
		require.NoError(t, it.Close())
	}
}

func puts(keys ...string) func(*Batch) error {
	return func(b *Batch) (err error) {
		for _, k := range keys {
			err = b.Set([]byte(k), []byte("theirs"))
		}
		return err
	}
}

func deletes(key string) func(*Batch) error {
	return func(b *Batch) error { return b.Delete([]byte(key)) }
}

func deletesRange(lo, hi string) func(*Batch) error {
	return func(b *Batch) error { return b.DeleteRange([]byte(lo), []byte(hi)) }
}

func both(fs ...func(*testing.T, *Tx)) func(*testing.T, *Tx) {
	return func(t *testing.T, tx *Tx) {
		for _, f := range fs {
			f(t, tx)
		}
	}
}

func ownSet(key string) func(*testing.T, *Tx) {
	return func(t *testing.T, tx *Tx) { require.NoError(t, tx.Set([]byte(key), nil)) }
}

func ownDeleteRange(lo, hi string) func(*testing.T, *Tx) {
	return func(t *testing.T, tx *Tx) { require.NoError(t, tx.DeleteRange([]byte(lo), []byte(hi))) }
}

var conflictCases = []conflictCase{
	{"a key is set", lookUp("c"), puts("c"), true},
	{"a key is deleted", lookUp("c"), deletes("c"), true},
	{"an absent key is set", lookUp("d"), puts("d"), true},
	{"an absent key is deleted", lookUp("d"), deletes("d"), true},
	{"a key is in a range delete", lookUp("d"), deletesRange("c", "e"), true},
	{"one key of many", lookUp("a", "b", "c", "d"), puts("x", "y", "d"), true},
	{"the empty key", lookUp(""), puts(""), true},
	{"another key", lookUp("c", "d"), puts("b", "e"), false},
	{"beside a range delete", lookUp("b", "e"), deletesRange("c", "e"), false},
	{"only writes", lookUp(), puts("w", "c"), false},
	{"a key that it wrote itself", both(ownSet("c"), lookUp("c")), puts("c"), false},
	{"a key that it deleted itself", both(ownDeleteRange("a", "d"), lookUp("c", "b")), puts("c", "b"), false},
	{"a key that it read before it wrote it", both(lookUp("c"), ownSet("c")), puts("c"), true},

	{"a phantom between entries", moves("", "", "Fnnn"), puts("d"), true},
	{"a phantom before the first", moves("", "", "F"), puts("a"), true},
	{"a phantom before the first in bounds", moves("b", "", "F"), puts("bb"), true},
	{"before the bounds", moves("b", "", "Fnnn"), puts("a"), false},
	{"a phantom after the last", moves("", "", "Fnnn"), puts("z"), true},
	{"a phantom after the last in bounds", moves("", "z", "Fnnn"), puts("y"), true},
	{"at the upper bound", moves("", "z", "Fnnn"), puts("z"), false},
	{"after where it stopped", moves("", "", "Fn"), puts("f", "g"), false},
	{"right after where it stopped", moves("", "", "Fn"), puts("e\x00"), false},
	{"where it stopped", moves("", "", "Fn"), deletes("e"), true},
	{"a range that has nothing", moves("h", "k", "F"), puts("j"), true},
	{"a range that has nothing, backward", moves("h", "k", "L"), puts("j"), true},
	{"a range delete over a part", moves("", "", "Fn"), deletesRange("d", "dd"), true},
	{"a range delete after", moves("", "", "Fn"), deletesRange("f", "z"), false},
	{"a seek to an entry", moves("", "", "d"), puts("dd"), true},
	{"before a seek", moves("", "", "d"), puts("c"), false},
	{"after a seek", moves("", "", "d"), puts("f"), false},
	{"between two seeks", moves("", "", "bg"), puts("d"), false},
	{"the first of two seeks", moves("", "", "bg"), puts("bb"), true},
	{"the second of two seeks", moves("", "", "bf"), puts("ff"), true},
	{"backward from the end", moves("", "", "L"), puts("x"), true},
	{"backward within bounds", moves("", "f", "L"), puts("ee"), true},
	{"after bounds, backward", moves("", "f", "Lp"), puts("f"), false},
	{"where it stopped, backward", moves("", "", "Lp"), deletes("e"), true},
	{"before where it stopped, backward", moves("", "", "Lp"), puts("d"), false},
	{"backward to the beginning", moves("", "", "Lppp"), puts("a"), true},
	{"backward to the lower bound", moves("b", "", "Lppp"), puts("b"), true},
	{"before the lower bound, backward", moves("b", "", "Lppp"), puts("a"), false},
	{"a seek backward", moves("", "", "<f"), puts("ee"), true},
	{"at the key of a seek backward", moves("", "", "<f"), puts("f"), false},
	{"back and forth", moves("", "", "epn"), puts("d"), true},
	{"after back and forth", moves("", "", "epn"), puts("f"), false},
	{"back and further forth", moves("", "", "epnn"), puts("f"), true},
	{"an iterator that is open", moves("", "", "Fn."), puts("d"), true},
	{"after an iterator that is open", moves("", "", "Fn."), puts("f"), false},
	{"an iterator that did not move", moves("", "", ""), puts("c", "d"), false},
	{"bounds that are upside down", moves("g", "c", "FL"), puts("e"), false},
	{"a scan over own writes", both(ownSet("d"), moves("", "", "Fn")), puts("cc"), true},
	{"after a scan that ended on an own write", both(ownSet("d"), moves("", "", "Fn")), puts("e"), false},
}

// queue starts f, which commits, and returns when it waits in the pipeline as the n-th.
func queue(db *DB, n int, f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	storetest.Until(func() bool {
		_, waiting := db.commits.Queue()
		return waiting >= n
	})
	return done
}

// exclusive runs f between two groups of commits.
func exclusive(db *DB, f func() error) error { return db.commits.Exclusive(context.Background(), f) }

// hold keeps the pipeline busy: what is committed waits, and goes on together when
// the function that it returns is called.
func hold(t *testing.T, db *DB) (release func()) {
	held, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- exclusive(db, func() error {
			close(held)
			<-goOn
			return nil
		})
	}()
	<-held
	return func() {
		close(goOn)
		require.NoError(t, <-done)
	}
}

// conflictModes are where the other's write is when the transaction is validated.
var conflictModes = map[string]func(t *testing.T, db *DB, write *Batch, tx *Tx) error{
	"memtable": func(t *testing.T, _ *DB, write *Batch, tx *Tx) error {
		require.NoError(t, write.Commit(NoSync))
		return tx.Commit(NoSync)
	},
	"level 0": func(t *testing.T, db *DB, write *Batch, tx *Tx) error {
		require.NoError(t, write.Commit(NoSync))
		require.NoError(t, db.Flush(t.Context()))
		return tx.Commit(NoSync)
	},
	"last level": func(t *testing.T, db *DB, write *Batch, tx *Tx) error {
		require.NoError(t, write.Commit(NoSync))
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		return tx.Commit(NoSync)
	},
	"the same group": func(t *testing.T, db *DB, write *Batch, tx *Tx) error {
		release := hold(t, db)
		first := queue(db, 1, func() error { return write.Commit(NoSync) })
		second := queue(db, 2, func() error { return tx.Commit(NoSync) })
		release()
		require.NoError(t, <-first)
		return <-second
	},
	"the group before": func(t *testing.T, db *DB, write *Batch, tx *Tx) error {
		release := hold(t, db)
		first := queue(db, 1, func() error { return write.Commit(NoSync) })
		between := queue(db, 2, func() error { return exclusive(db, func() error { return nil }) })
		second := queue(db, 3, func() error { return tx.Commit(NoSync) })
		release()
		require.NoError(t, <-first)
		require.NoError(t, <-between)
		return <-second
	},
	"a memtable being flushed": func(t *testing.T, db *DB, write *Batch, tx *Tx) error {
		release := hold(t, db)
		first := queue(db, 1, func() error { return write.Commit(NoSync) })
		between := queue(db, 2, func() error { return db.Flush(t.Context()) })
		second := queue(db, 3, func() error { return tx.Commit(NoSync) })
		db.manifest.Lock() // the flush does not end before the commit
		release()
		require.NoError(t, <-first)
		err := <-second
		db.manifest.Unlock()
		require.NoError(t, <-between)
		return err
	},
}

func TestTxConflicts(t *testing.T) {
	t.Parallel()
	for mode, commit := range conflictModes {
		t.Run(mode, func(t *testing.T) {
			for _, c := range conflictCases {
				t.Run(c.name, func(t *testing.T) {
					db := openMem(t, &Options{MemtableSize: 64 << 10, CacheSize: -1})
					for _, k := range []string{"c", "e", "g"} {
						set(t, db, k, "old")
					}
					if len(c.name)%2 == 0 {
						require.NoError(t, db.Compact(t.Context(), nil, nil))
					}
					tx := beginTx(t, db, true)
					c.read(t, tx)
					require.NoError(t, tx.Set([]byte("w"), []byte("mine")))
					write := db.NewBatch()
					require.NoError(t, c.write(write))
					want := contents(t, db, nil)
					err := commit(t, db, write, tx)
					if c.conflict {
						require.ErrorIs(t, err, ErrConflict)
						require.NotEqual(t, "mine", contents(t, db, nil)["w"], "nothing of it was written")
					} else {
						require.NoError(t, err)
						require.Equal(t, "mine", contents(t, db, nil)["w"])
						require.NotEqual(t, want, contents(t, db, nil))
					}
				})
			}
		})
	}
}

// TestTxGroups holds the pipeline, so that many commits make one group, and sees who is refused. The leader's own
// request is refused, too, and those that wait for it are not.
func TestTxGroups(t *testing.T) {
	for name, valueSize := range map[string]int{
		"applied by the leader": 1, "applied by everybody": commit.ParallelBytes / 4,
	} {
		t.Run(name, func(t *testing.T) {
			db := openMem(t, nil)
			set(t, db, "0", "")
			value := make([]byte, valueSize)
			// Transaction n reads key n and writes key n+1: whoever follows one that is
			// committed conflicts with it, and whoever follows one that is refused does not.
			release := hold(t, db)
			var ends []<-chan error
			before := db.Metrics()
			for n := range 12 {
				tx := beginTx(t, db, true)
				_, err := tx.Has(fmt.Appendf(nil, "%d", n))
				require.NoError(t, err)
				require.NoError(t, tx.Set(fmt.Appendf(nil, "%d", n+1), value))
				ends = append(ends, queue(db, n+1, func() error { return tx.Commit(Sync) }))
			}
			release()
			for n, end := range ends {
				if n%2 == 0 {
					require.NoError(t, <-end, "transaction %d", n)
				} else {
					require.ErrorIs(t, <-end, ErrConflict, "transaction %d", n)
				}
			}
			m := db.Metrics()
			require.EqualValues(t, 1, m.WALSyncs-before.WALSyncs, "they share a sync")
			require.EqualValues(t, 1, m.CommitGroups-before.CommitGroups)
			require.EqualValues(t, 6, m.Writes-before.Writes)
			require.Len(t, contents(t, db, nil), 7)

			// A group of which nothing is left, led by one of the refused.
			var all []*Tx
			for range 3 {
				tx := beginTx(t, db, true)
				_, err := tx.Has([]byte("1"))
				require.NoError(t, err)
				require.NoError(t, tx.Set([]byte("z"), nil))
				all = append(all, tx)
			}
			release = hold(t, db)
			write := queue(db, 1, func() error { return db.Set([]byte("1"), nil, Sync) })
			alone := queue(db, 2, func() error { return exclusive(db, func() error { return nil }) })
			ends = nil
			for n, tx := range all {
				ends = append(ends, queue(db, n+3, func() error { return tx.Commit(Sync) }))
			}
			release()
			require.NoError(t, <-write)
			require.NoError(t, <-alone)
			for _, end := range ends {
				require.ErrorIs(t, <-end, ErrConflict)
			}
			require.EqualValues(t, 1, db.Metrics().WALSyncs-m.WALSyncs)
			set(t, db, "z", "the pipeline goes on")
		})
	}
}

// TestWriteSkew has two transactions that each read what the other writes: under
// snapshot isolation alone both would be committed, and nobody be on call.
func TestWriteSkew(t *testing.T) {
	db := openMem(t, nil)
	set(t, db, "doctor/ann", "on call")
	set(t, db, "doctor/bob", "on call")
	leave := func(tx *Tx, who string) {
		onCall := 0
		for _, v := range contents(t, tx, &IterOptions{LowerBound: []byte("doctor/"), UpperBound: []byte("doctor0")}) {
			if v == "on call" {
				onCall++
			}
		}
		if onCall >= 2 {
			require.NoError(t, tx.Set([]byte("doctor/"+who), []byte("off")))
		}
	}
	ann, bob := beginTx(t, db, true), beginTx(t, db, true)
	leave(ann, "ann")
	leave(bob, "bob")
	require.NoError(t, ann.Commit(nil))
	require.ErrorIs(t, bob.Commit(nil), ErrConflict)
	bob = beginTx(t, db, true)
	leave(bob, "bob")
	require.NoError(t, bob.Commit(nil))
	require.Equal(t, storetest.Model{"doctor/ann": "off", "doctor/bob": "on call"}, contents(t, db, nil))
}
