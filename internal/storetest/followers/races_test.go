package followers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
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
	for name, o := range map[string]*kv.Options{
		"the manifest grows":      stores.With(harness.Harness{FS: vfs.NewMem()}, &kv.Options{}),
		"the manifest is rotated": stores.With(harness.Harness{FS: vfs.NewMem(), MaxManifestSize: 700}, &kv.Options{}),
	} {
		for _, refresh := range []bool{false, true} {
			w, err := kv.Open("db", o)
			require.NoError(t, err)
			stores.Set(t, w, "first", "1")
			require.NoError(t, w.Flush(t.Context())) // the memtable is empty: an ingest needs no new log
			files := []string{filepath.Join(t.TempDir(), "a")}
			storetest.IngestFile(t, vfs.OS, files[0], nil, "ingested=1")
			newest := func(kind manifest.FileKind) string {
				return storetest.NewestFile(t, harness.Of(o).FS, "db", kind)
			}
			log, edits := newest(manifest.FileWAL), newest(manifest.FileManifest)
			hook := &openingFS{FS: harness.Of(o).FS, kind: manifest.FileWAL}
			ingested := func() {
				for i := range 10 {
					path := storetest.IngestFile(t, harness.Of(o).FS, fmt.Sprintf("file%d", i), nil, "ingested=1")
					require.NoError(t, w.Ingest(t.Context(), []string{path}, nil))
					harness.Settle(w) // a store of many files has a manifest too large to be worth rotating
				}
				require.Equal(t, log, newest(manifest.FileWAL), "or there is nothing to see here")
				require.Equal(t, harness.Of(o).MaxManifestSize > 0, edits != newest(manifest.FileManifest), name)
				stores.Set(t, w, "later", "1")
			}
			if !refresh {
				hook.opening = ingested
			}
			view, err := kv.OpenReadOnly("db", stores.With(harness.Harness{FS: hook}, &kv.Options{}))
			require.NoError(t, err)
			if refresh {
				stores.Set(t, w, "first", "2")
				require.NoError(t, w.Flush(t.Context()))
				log = newest(manifest.FileWAL)
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
			harness.Of(o).FS = vfs.NewMem()
		}
	}
}

// Between reading the manifest and reading the log, the store gets its first operands: a
// view combines them by the merger that the manifest names by now, or refuses.
func TestAViewCombinesTheFirstOperandsOfAStore(t *testing.T) {
	t.Parallel()
	k, sum := []byte("k"), string(kv.AppendInt64(nil, 3))
	for _, refresh := range []bool{false, true} {
		for _, mine := range []kv.Merger{nil, kv.Int64Add, kv.Append(",")} {
			mem := vfs.NewMem()
			w, err := kv.Open("db", stores.With(harness.Harness{FS: mem}, &kv.Options{Merger: kv.Int64Add}))
			require.NoError(t, err)
			stores.Set(t, w, "first", "1")
			hook := &openingFS{FS: mem, kind: manifest.FileWAL}
			merged := func() {
				require.NoError(t, w.Merge(k, kv.AppendInt64(nil, 1), nil))
				require.NoError(t, w.Merge(k, kv.AppendInt64(nil, 2), nil))
			}
			if !refresh {
				hook.opening = merged
			}
			view, err := kv.OpenReadOnly("db", stores.With(harness.Harness{FS: hook}, &kv.Options{Merger: mine}))
			if refresh {
				require.NoError(t, err)
				require.NoError(t, w.Flush(t.Context()))
				hook.opening = merged // the next log
				err = view.Refresh(t.Context())
			}
			require.Nil(t, hook.opening)
			if mine != nil && mine.Name() != kv.Int64Add.Name() {
				require.ErrorIs(t, err, kv.ErrInvalidOptions)
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
	o := stores.TinyOptions()
	harness.Of(o).MaxManifestSize = 2000
	w := stores.OpenWriter(t, dir, o)
	view := stores.OpenView(t, dir, nil)
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
		require.NoError(t, view.View(func(tx *kv.Tx) error {
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
func countOn(t *testing.T, w *kv.DB, files string, n int, rng *rand.Rand) error {
	key, value := fmt.Appendf(nil, "n%04d", n), make([]byte, rng.IntN(2000))
	switch rng.IntN(8) {
	case 0:
		return w.Update(func(tx *kv.Tx) error {
			_, err := tx.Has(fmt.Appendf(nil, "n%04d", n-1))
			return errors.Join(err, tx.Set(key, value))
		})
	case 1:
		if err := w.Flush(t.Context()); err != nil {
			return err
		}
		return w.SetTTL(key, value, time.Hour, kv.NoSync)
	case 2, 3:
		path := storetest.IngestFile(t, vfs.OS, filepath.Join(files, strconv.Itoa(n)), nil, string(key)+"=ingested")
		return w.Ingest(t.Context(), []string{path}, nil)
	}
	return w.Set(key, value, kv.NoSync)
}

func TestTransactionsOfAViewReadOneMoment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := stores.OpenWriter(t, dir, nil)
	stores.Set(t, w, "k", "1")
	view := stores.OpenView(t, dir, nil)
	_, err := view.Begin(true)
	require.ErrorIs(t, err, kv.ErrReadOnly)
	require.ErrorIs(t, view.Update(func(*kv.Tx) error { return nil }), kv.ErrReadOnly)
	require.ErrorIs(t, view.Merge([]byte("k"), nil, nil), kv.ErrReadOnly)

	var it *kv.Iterator
	require.NoError(t, view.View(func(tx *kv.Tx) error {
		for i := range 3 {
			stores.Set(t, w, "k", strconv.Itoa(i+2))
			stores.Set(t, w, strconv.Itoa(i), "new")
			require.NoError(t, w.Compact(t.Context(), nil, nil))
			require.NoError(t, view.Refresh(t.Context()))
			requireGet(t, view, "k", strconv.Itoa(i+2))
			storetest.RequireContents(t, storetest.Model{"k": "1"}, tx)
			requireGet(t, tx, "k", "1")
			ok, err := tx.Has([]byte("0"))
			require.NoError(t, err)
			require.False(t, ok)
		}
		require.ErrorIs(t, tx.Set([]byte("k"), nil), kv.ErrTxReadOnly)
		it, err = tx.NewIter(nil)
		require.NoError(t, err)
		require.True(t, it.First())
		require.Equal(t, 1, view.Metrics().Transactions)
		return nil
	}))
	require.False(t, it.Next())
	require.ErrorIs(t, it.Error(), kv.ErrTxDone)
	require.NoError(t, it.Close())
	require.Zero(t, view.Metrics().Transactions+view.Metrics().Snapshots)
	e, err := view.Explain([]byte("k"))
	require.NoError(t, err)
	require.True(t, e.Found)

	tx, err := view.Begin(false)
	require.NoError(t, err)
	require.ErrorIs(t, view.Close(), kv.ErrTransactionsOpen)
	_, err = tx.Get([]byte("k"))
	require.ErrorIs(t, err, kv.ErrClosed)
	require.NoError(t, tx.Discard())
}

func TestOperandsAndExpiriesInAView(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	clock := &storetest.Clock{} // compactions look at it too
	w := stores.OpenDir(t, dir, &kv.Options{Clock: clock.Time, Merger: kv.Int64Add})
	view := stores.OpenView(t, dir, &kv.Options{Clock: clock.Time}) // before there are operands
	mine := stores.OpenView(t, dir, &kv.Options{Clock: clock.Time, Merger: kv.Int64Add})
	other := stores.OpenView(t, dir, &kv.Options{Clock: clock.Time, Merger: kv.Append("")})
	k := []byte("k")
	require.NoError(t, w.SetTTL([]byte("soon"), []byte("v"), time.Minute, nil))
	for i := range int64(6) {
		require.NoError(t, w.Merge(k, kv.AppendInt64(nil, i), nil))
		if i%2 == 1 {
			require.NoError(t, w.Flush(t.Context()))
		}
	}
	for _, v := range []*kv.DB{view, mine} {
		require.NoError(t, v.Refresh(t.Context()))
		requireGet(t, v, "k", string(kv.AppendInt64(nil, 15)))
		requireGet(t, v, "soon", "v")
		storetest.RequireContents(t, storetest.Model{"k": string(kv.AppendInt64(nil, 15)), "soon": "v"}, v)
	}
	require.ErrorIs(t, other.Refresh(t.Context()), kv.ErrInvalidOptions)
	storetest.RequireContents(t, storetest.Model{}, other)
	_, err := kv.OpenReadOnly(dir, &kv.Options{Merger: kv.Append("")})
	require.ErrorIs(t, err, kv.ErrInvalidOptions)
	clock.Advance(time.Hour)
	storetest.RequireContents(t, storetest.Model{"k": string(kv.AppendInt64(nil, 15))}, view)

	// The store forgets its operands, and gets others. An old view still has its own.
	old := view.NewSnapshot()
	require.NoError(t, w.Compact(t.Context(), nil, nil))
	require.NoError(t, w.Close())
	w = stores.OpenWriter(t, dir, &kv.Options{Clock: clock.Time, Merger: kv.Append(",")})
	require.NoError(t, w.Set(k, []byte("a"), nil))
	require.NoError(t, w.Merge(k, []byte("b"), nil))
	require.NoError(t, view.Refresh(t.Context()))
	requireGet(t, view, "k", "a,b")
	requireGet(t, old, "k", string(kv.AppendInt64(nil, 15)))
	require.NoError(t, old.Close())
}

// The log and the manifest of the writer break and are replaced, in turn, and a
// reader beside it is with it again as soon as it has resumed.
func TestViewsOfAStoreThatResumes(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"write", "sync", "create", "rename", "syncdir"} {
		for _, what := range []string{"a commit", "a flush", "an ingest"} {
			mem := vfs.NewMem()
			f := &vfstest.FaultFS{FS: mem}
			o := stores.With(harness.Harness{FS: f, MaxManifestSize: 600, Backoff: storetest.Quick},
				&kv.Options{MemtableSize: 64 << 10})
			w, err := kv.Open("db", o)
			require.NoError(t, err)
			view, err := kv.OpenReadOnly("db", stores.With(harness.Harness{FS: mem}, &kv.Options{}))
			require.NoError(t, err)
			want := storetest.Model{}
			for i := range 8 {
				k := fmt.Sprintf("key%d", i)
				stores.Set(t, w, k, "before")
				want[k] = "before"
				path := storetest.IngestFile(t, mem, "file"+k, nil, k+"in=ingested")
				storetest.FailOnce(f, op)
				switch what {
				case "a commit":
					err = w.Set([]byte("failed"), nil, kv.Sync)
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
				stores.UntilResumed(w)
				require.NoError(t, w.Flush(t.Context()))
				require.NoError(t, view.Refresh(t.Context()))
				storetest.RequireContents(t, want, view)
				storetest.RequireContents(t, want, w)
			}
			require.NoError(t, view.Close())
			require.NoError(t, w.Close())
		}
	}
}

// requireGet requires a value.
func requireGet(t testing.TB, db kv.Reader, key, want string) {
	t.Helper()
	v, err := db.Get([]byte(key))
	require.NoError(t, err)
	require.Equal(t, want, string(v))
}
