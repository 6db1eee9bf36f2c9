package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// An openingFS calls a function when a file of a kind is opened, and before.
type openingFS struct {
	vfs.FS
	kind    manifest.FileKind
	opening func()
}

func (o *openingFS) Open(name string) (vfs.ReadFile, error) {
	if kind, _ := manifest.ParseFileName(filepath.Base(name)); kind == o.kind && o.opening != nil {
		f := o.opening
		o.opening = nil
		f()
	}
	return o.FS.Open(name)
}

// Between reading the manifest and reading the log, a file is ingested, and something
// is written to that same log: a view has both or none.
func TestAViewHasNoHoleWhereAFileWasIngested(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*Options{
		"the manifest grows":      {harness: harness.Harness{FS: vfs.NewMem()}},
		"the manifest is rotated": {harness: harness.Harness{FS: vfs.NewMem(), MaxManifestSize: 700}},
	} {
		for _, refresh := range []bool{false, true} {
			w, err := Open("db", o)
			require.NoError(t, err)
			set(t, w, "first", "1")
			require.NoError(t, w.Flush(t.Context())) // the memtable is empty: an ingest needs no new log
			files := []string{filepath.Join(t.TempDir(), "a")}
			ingestFile(t, vfs.OS, files[0], nil, "ingested=1")
			log, num := w.commits.Log().ID(), w.manifest.Num()
			hook := &openingFS{FS: o.harness.FS, kind: manifest.FileWAL}
			ingested := func() {
				for i := range 10 {
					path := ingestFile(t, o.harness.FS, fmt.Sprintf("file%d", i), nil, "ingested=1")
					require.NoError(t, w.Ingest(t.Context(), []string{path}, nil))
					w.settle() // a store of many files has a manifest too large to be worth rotating
				}
				require.Equal(t, log, w.commits.Log().ID(), "or there is nothing to see here")
				require.Equal(t, o.harness.MaxManifestSize > 0, num != w.manifest.Num(), name)
				set(t, w, "later", "1")
			}
			if !refresh {
				hook.opening = ingested
			}
			view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: hook}})
			require.NoError(t, err)
			if refresh {
				set(t, w, "first", "2")
				require.NoError(t, w.Flush(t.Context()))
				log = w.commits.Log().ID()
				hook.opening = ingested
				require.NoError(t, view.Refresh(t.Context()))
			}
			require.Nil(t, hook.opening)
			later, err := view.Has([]byte("later"))
			require.NoError(t, err)
			got, err := view.Has([]byte("ingested"))
			require.NoError(t, err)
			require.True(t, got || !later, "%s, refresh %t: a later write without what came before", name, refresh)
			require.NoError(t, view.Refresh(t.Context()))
			requireGet(t, view, "ingested", "1")
			requireGet(t, view, "later", "1")
			require.NoError(t, view.Close())
			require.NoError(t, w.Close())
			o.harness.FS = vfs.NewMem()
		}
	}
}

// Between reading the manifest and reading the log, the store gets its first operands: a
// view combines them by the merger that the manifest names by now, or refuses.
func TestAViewCombinesTheFirstOperandsOfAStore(t *testing.T) {
	t.Parallel()
	k, sum := []byte("k"), string(AppendInt64(nil, 3))
	for _, refresh := range []bool{false, true} {
		for _, mine := range []Merger{nil, Int64Add, Append(",")} {
			mem := vfs.NewMem()
			w, err := Open("db", &Options{harness: harness.Harness{FS: mem}, Merger: Int64Add})
			require.NoError(t, err)
			set(t, w, "first", "1")
			hook := &openingFS{FS: mem, kind: manifest.FileWAL}
			merged := func() {
				require.NoError(t, w.Merge(k, AppendInt64(nil, 1), nil))
				require.NoError(t, w.Merge(k, AppendInt64(nil, 2), nil))
			}
			if !refresh {
				hook.opening = merged
			}
			view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: hook}, Merger: mine})
			if refresh {
				require.NoError(t, err)
				require.NoError(t, w.Flush(t.Context()))
				hook.opening = merged // the next log
				err = view.Refresh(t.Context())
			}
			require.Nil(t, hook.opening)
			if mine != nil && mine.Name() != Int64Add.Name() {
				require.ErrorIs(t, err, ErrInvalidOptions)
			} else {
				require.NoError(t, err)
				requireGet(t, view, "k", sum)
			}
			if view != nil {
				require.NoError(t, view.Close())
			}
			require.NoError(t, w.Close())
		}
	}
}

// A writer counts, by writes of all kinds, and a reader beside it sees no number
// without all those before.
func TestViewsWhileFilesAreIngestedAndTransactionsCommit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	o := tinyOptions()
	o.harness.MaxManifestSize = 2000
	w := openWriter(t, dir, o)
	view := openView(t, dir, nil)
	last := scale.Count(60, 150/storetest.RaceFactor)
	counted := make(chan error, 1)
	files := t.TempDir()
	go func() {
		counted <- func() error {
			rng := rand.New(rand.NewPCG(5, 61))
			for n := 1; n <= last; n++ {
				if err := countOn(t, w, files, n, rng); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	for seen := 0; seen < last; {
		require.NoError(t, view.Refresh(t.Context()))
		require.NoError(t, view.View(func(tx *Tx) error {
			n := 0
			for ; n < last; n++ {
				ok, err := tx.Has(fmt.Appendf(nil, "n%04d", n+1))
				if err != nil {
					return err
				}
				if !ok {
					break
				}
			}
			require.GreaterOrEqual(t, n, seen)
			seen = n
			it, err := tx.NewIter(nil)
			if err != nil {
				return err
			}
			keys := 0
			for ok := it.First(); ok; ok = it.Next() {
				keys++
			}
			require.Equal(t, n, keys, "there are later numbers")
			return it.Close()
		}))
	}
	require.NoError(t, <-counted)
}

// countOn writes number n in one of many ways.
func countOn(t *testing.T, w *DB, files string, n int, rng *rand.Rand) error {
	key, value := fmt.Appendf(nil, "n%04d", n), make([]byte, rng.IntN(2000))
	switch rng.IntN(8) {
	case 0:
		return w.Update(func(tx *Tx) error {
			_, err := tx.Has(fmt.Appendf(nil, "n%04d", n-1))
			return errors.Join(err, tx.Set(key, value))
		})
	case 1:
		if err := w.Flush(t.Context()); err != nil {
			return err
		}
		return w.SetTTL(key, value, time.Hour, NoSync)
	case 2, 3:
		path := ingestFile(t, vfs.OS, filepath.Join(files, strconv.Itoa(n)), nil, string(key)+"=ingested")
		return w.Ingest(t.Context(), []string{path}, nil)
	}
	return w.Set(key, value, NoSync)
}

func TestTransactionsOfAViewReadOneMoment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, nil)
	set(t, w, "k", "1")
	view := openView(t, dir, nil)
	_, err := view.Begin(true)
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, view.Update(func(*Tx) error { return nil }), ErrReadOnly)
	require.ErrorIs(t, view.Merge([]byte("k"), nil, nil), ErrReadOnly)

	var it *Iterator
	require.NoError(t, view.View(func(tx *Tx) error {
		for i := range 3 {
			set(t, w, "k", strconv.Itoa(i+2))
			set(t, w, strconv.Itoa(i), "new")
			require.NoError(t, w.Compact(t.Context(), nil, nil))
			require.NoError(t, view.Refresh(t.Context()))
			requireGet(t, view, "k", strconv.Itoa(i+2))
			requireContents(t, storetest.Model{"k": "1"}, tx)
			requireGet(t, tx, "k", "1")
			ok, err := tx.Has([]byte("0"))
			require.NoError(t, err)
			require.False(t, ok)
		}
		require.ErrorIs(t, tx.Set([]byte("k"), nil), ErrTxReadOnly)
		it, err = tx.NewIter(nil)
		require.NoError(t, err)
		require.True(t, it.First())
		require.Equal(t, 1, view.Metrics().Transactions)
		return nil
	}))
	require.False(t, it.Next())
	require.ErrorIs(t, it.Error(), ErrTxDone)
	require.NoError(t, it.Close())
	require.Zero(t, view.Metrics().Transactions+view.Metrics().Snapshots)
	e, err := view.Explain([]byte("k"))
	require.NoError(t, err)
	require.True(t, e.Found)

	tx, err := view.Begin(false)
	require.NoError(t, err)
	require.ErrorIs(t, view.Close(), ErrTransactionsOpen)
	_, err = tx.Get([]byte("k"))
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, tx.Discard())
}

func TestOperandsAndExpiriesInAView(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	clock := &storetest.Clock{} // compactions look at it too
	w := openDir(t, dir, &Options{Clock: clock.Time, Merger: Int64Add})
	view := openView(t, dir, &Options{Clock: clock.Time}) // before there are operands
	mine := openView(t, dir, &Options{Clock: clock.Time, Merger: Int64Add})
	other := openView(t, dir, &Options{Clock: clock.Time, Merger: Append("")})
	k := []byte("k")
	require.NoError(t, w.SetTTL([]byte("soon"), []byte("v"), time.Minute, nil))
	for i := range int64(6) {
		require.NoError(t, w.Merge(k, AppendInt64(nil, i), nil))
		if i%2 == 1 {
			require.NoError(t, w.Flush(t.Context()))
		}
	}
	for _, v := range []*DB{view, mine} {
		require.NoError(t, v.Refresh(t.Context()))
		requireGet(t, v, "k", string(AppendInt64(nil, 15)))
		requireGet(t, v, "soon", "v")
		requireContents(t, storetest.Model{"k": string(AppendInt64(nil, 15)), "soon": "v"}, v)
	}
	require.ErrorIs(t, other.Refresh(t.Context()), ErrInvalidOptions)
	requireContents(t, storetest.Model{}, other)
	_, err := OpenReadOnly(dir, &Options{Merger: Append("")})
	require.ErrorIs(t, err, ErrInvalidOptions)
	clock.Advance(time.Hour)
	requireContents(t, storetest.Model{"k": string(AppendInt64(nil, 15))}, view)

	// The store forgets its operands, and gets others. An old view still has its own.
	old := view.NewSnapshot()
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	require.NoError(t, w.Close())
	w = openWriter(t, dir, &Options{Clock: clock.Time, Merger: Append(",")})
	require.NoError(t, w.Set(k, []byte("a"), nil))
	require.NoError(t, w.Merge(k, []byte("b"), nil))
	require.NoError(t, view.Refresh(t.Context()))
	requireGet(t, view, "k", "a,b")
	requireGet(t, old, "k", string(AppendInt64(nil, 15)))
	require.NoError(t, old.Close())
}

func TestAViewRefusesAFeatureThatItDoesNotKnow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := openWriter(t, dir, nil)
	set(t, w, "k", "1")
	view := openView(t, dir, nil)
	set(t, w, "k", "2")
	require.NoError(t, w.manifest.Append(&manifest.Edit{Features: 1 << 40}))
	err := view.Refresh(t.Context())
	require.ErrorIs(t, err, ErrNewerFormat)
	require.ErrorContains(t, err, "0x10000000000")
	requireContents(t, storetest.Model{"k": "1"}, view)
	_, err = OpenReadOnly(dir, nil)
	require.ErrorIs(t, err, ErrNewerFormat)

	again := filepath.Join(t.TempDir(), "copy") // which is not locked
	require.NoError(t, os.CopyFS(again, os.DirFS(dir)))
	before := readDir(t, again)
	_, err = Open(again, nil)
	require.ErrorIs(t, err, ErrNewerFormat)
	require.NotErrorIs(t, err, ErrCorruption)
	after, lock := readDir(t, again), filepath.Join(again, manifest.LockName)
	after[lock] = before[lock]
	require.Equal(t, before, after, "nothing was touched")
}

// The log and the manifest of the writer break and are replaced, in turn, and a
// reader beside it is with it again as soon as it has resumed.
func TestViewsOfAStoreThatResumes(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"write", "sync", "create", "rename", "syncdir"} {
		for _, what := range []string{"a commit", "a flush", "an ingest"} {
			mem := vfs.NewMem()
			f := &vfstest.FaultFS{FS: mem}
			o := &Options{harness: harness.Harness{FS: f, MaxManifestSize: 600, Backoff: quickBackoff},
				MemtableSize: 64 << 10}
			w, err := Open("db", o)
			require.NoError(t, err)
			view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: mem}})
			require.NoError(t, err)
			want := storetest.Model{}
			for i := range 8 {
				k := fmt.Sprintf("key%d", i)
				set(t, w, k, "before")
				want[k] = "before"
				path := ingestFile(t, mem, "file"+k, nil, k+"in=ingested")
				failOnce(f, op)
				switch what {
				case "a commit":
					err = w.Set([]byte("failed"), nil, Sync)
				case "a flush":
					err = w.Flush(t.Context())
				case "an ingest":
					if err = w.Ingest(t.Context(), []string{path}, nil); err == nil {
						want[k+"in"] = "ingested"
					}
				}
				f.Set(nil)
				if err == nil && what == "a commit" {
					want["failed"] = ""
				}
				// Whatever it sees meanwhile, everything acknowledged is there.
				refreshErr := view.Refresh(t.Context())
				require.NoError(t, refreshErr, "%s fails in %s", op, what)
				for k, v := range want {
					requireGet(t, view, k, v)
				}
				w.untilResumed()
				require.NoError(t, w.Flush(t.Context()))
				require.NoError(t, view.Refresh(t.Context()))
				requireContents(t, want, view)
				requireContents(t, want, w)
			}
			require.NoError(t, view.Close())
			require.NoError(t, w.Close())
		}
	}
}
