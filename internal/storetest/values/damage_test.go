package values

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// requireKeys requires that what needs no value does not notice that values are damaged: Has, GetSize and
// iterators for keys, in both directions. Keys whose operands must be combined with a value are left out.
func requireKeys(t *testing.T, db *kv.DB, m storetest.Model) {
	t.Helper()
	for k, v := range m {
		if strings.HasSuffix(v, ",more") {
			continue
		}
		has, err := db.Has([]byte(k))
		require.NoError(t, err)
		require.True(t, has)
		size, err := db.GetSize([]byte(k))
		require.NoError(t, err)
		require.Equal(t, len(v), size)
	}
	for _, back := range []bool{false, true} {
		it, err := db.NewIter(&kv.IterOptions{KeysOnly: true})
		require.NoError(t, err)
		move, next := it.First, it.Next
		if back {
			move, next = it.Last, it.Prev
		}
		n := 0
		for ok := move(); ok; ok = next() {
			n++
		}
		require.NoError(t, it.Error())
		require.Len(t, m, n)
		require.NoError(t, it.Close())
	}
}

// requireRightOrNamed requires that every read is right, or an error with a file of names and an offset in it. It
// returns how many values cannot be read.
func requireRightOrNamed(t *testing.T, db *kv.DB, m storetest.Model, names []string) (lost int) {
	t.Helper()
	named := func(err error) {
		t.Helper()
		var ce *kv.CorruptionError
		require.ErrorAs(t, err, &ce)
		require.Contains(t, names, ce.File)
		require.GreaterOrEqual(t, ce.Offset, int64(0), "%v", err)
	}
	for k, v := range m {
		got, err := db.Get([]byte(k))
		if err != nil {
			named(err)
			lost++
			_, err = db.MultiGet([][]byte{[]byte(k)})
			named(err)
			continue
		}
		require.True(t, v == string(got))
	}
	tx, err := db.Begin(false)
	require.NoError(t, err)
	defer tx.Discard()
	for _, r := range []kv.Reader{db, tx} {
		for _, back := range []bool{false, true} {
			it, err := r.NewIter(nil)
			require.NoError(t, err)
			require.Equal(t, lost, passDamage(t, it, m, back, named))
			require.NoError(t, it.Close())
		}
	}
	return lost
}

// passDamage moves over all entries of m, and past each value that is damaged, of which it returns the number. Some
// moves go back and forth.
func passDamage(t *testing.T, it *kv.Iterator, m storetest.Model, back bool, named func(error)) (lost int) {
	t.Helper()
	move, next, turn := it.First, it.Next, it.Prev
	if back {
		move, next, turn = it.Last, it.Prev, it.Next
	}
	keys := m.Keys()
	if back {
		slices.Reverse(keys)
	}
	at := func(ok bool, n int) (failed int) {
		t.Helper()
		if ok {
			require.Equal(t, keys[n], string(it.Key()))
			require.True(t, m[keys[n]] == string(it.Value()))
			return 0
		}
		e, damaged := errors.AsType[*kv.ValueError](it.Error())
		require.True(t, damaged, "%d of %d entries: %v", n, len(keys), it.Error())
		require.Equal(t, keys[n], string(e.Key))
		require.False(t, it.Valid())
		require.Nil(t, it.Key())
		named(e)
		return 1
	}
	for n := range keys {
		if n == 0 {
			lost += at(move(), n)
			continue
		}
		lost += at(next(), n)
		if n%19 == 0 {
			at(turn(), n-1)
			at(next(), n)
		}
	}
	require.False(t, next())
	require.NoError(t, it.Error())
	return lost
}

// damagedBlobs are ways to harm two blob files of a store, which open does not see.
var damagedBlobs = map[string]func(a, b []byte) (x, y []byte){
	"one in the place of the other": func(a, b []byte) (x, y []byte) { return same(b, len(a)), b },
	"each in the other's place":     func(a, b []byte) (x, y []byte) { return same(b, len(a)), same(a, len(b)) },
	"a second half of zeros":        func(a, b []byte) (x, y []byte) { return same(a[:len(a)/2], len(a)), b },
	"moved by a byte":               func(a, b []byte) (x, y []byte) { return same(a[1:], len(a)), b },
	"records that are copied over": func(a, b []byte) (x, y []byte) {
		return append(a[:300:300], a[200:len(a)-100]...), b
	},
	"whole": func(a, b []byte) (x, y []byte) { return a, b },
}

// same returns n bytes that begin as b does, and go on with zeros.
func same(b []byte, n int) []byte { return append([]byte{}, append(b, make([]byte, n)...)[:n]...) }

func TestReadsOfDamagedBlobFilesAreRightOrNamed(t *testing.T) {
	t.Parallel()
	for what, damage := range damagedBlobs {
		t.Run(what, func(t *testing.T) {
			fsys := vfs.NewMem()
			db, clock, m := stores.Separated(t, fsys)
			names := storetest.BlobNames(t, db)
			require.NoError(t, db.Close())
			x, y := damage(storetest.ReadAll(t, fsys, names[0]), storetest.ReadAll(t, fsys, names[1]))
			require.NoError(t, vfs.ReplaceFile(fsys, names[0], x))
			require.NoError(t, vfs.ReplaceFile(fsys, names[1], y))
			db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys},
				&kv.Options{Merger: kv.Append(","), Clock: clock.Time}))
			require.NoError(t, err)
			lost := requireRightOrNamed(t, db, m, names)
			require.Equal(t, what != "whole", lost > 0)
			requireKeys(t, db, m)
			require.NoError(t, db.Compact(t.Context(), nil, nil), "a compaction passes handles on")
			require.GreaterOrEqual(t, requireRightOrNamed(t, db, m, names), 0)
			requireKeys(t, db, m)
			_ = db.Close()
		})
	}
}

// A damaged value that operands or newer versions stand over is in the way of no iterator: what hides it is shown, and
// what is made of it is an error of its key.
func TestIteratorsPassDamagedVersions(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	o := stores.With(harness.Harness{FS: fsys}, &kv.Options{SeparateFrom: 100, Merger: kv.Append(",")})
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	long, m := strings.Repeat("v", 300), storetest.Model{}
	for i := range 40 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%02d", i), []byte(long), kv.NoSync))
	}
	snapshot := db.NewSnapshot() // keeps the versions below
	require.NoError(t, db.Flush(t.Context()))
	for i := range 40 {
		k := fmt.Sprintf("key%02d", i)
		m[k] = long
		switch i % 4 {
		case 0:
			m[k] = "new"
			stores.Set(t, db, k, "new")
		case 1:
			require.NoError(t, db.Merge([]byte(k), []byte("x"), kv.NoSync))
			m[k] += ",x"
		case 2:
			for range manyVersions {
				require.NoError(t, db.Merge([]byte(k), []byte("y"), kv.NoSync))
				m[k] += ",y"
			}
		}
	}
	for _, b := range storetest.BlobsOnDisk(t, fsys, "db") {
		data := storetest.ReadAll(t, fsys, "db/"+b)
		clear(data[32 : len(data)-56])
		require.NoError(t, vfs.ReplaceFile(fsys, "db/"+b, data))
	}
	files, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	for b := range files.Version.Blobs() {
		require.NoError(t, b.Close()) // it has the file open that was replaced
	}
	release()
	for range 2 {
		for _, back := range []bool{false, true} {
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			require.Equal(t, 30, passDamage(t, it, m, back, func(err error) {
				require.ErrorIs(t, err,
					kv.ErrCorruption)
			}))
			require.NoError(t, it.Close())
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	snapshot.Close()
	require.NoError(t, db.Close())
}

// A blob file that is missing, or cut short, keeps a store from being opened, unless the option is set. Then the keys
// of its values fail, and can be overwritten; all others are there, and collections leave the file alone.
func TestAStoreWithoutABlobFileCanBeOpened(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func(fsys vfs.FS, name string) error{
		"missing": func(fsys vfs.FS, name string) error { return fsys.Remove(name) },
		"short": func(fsys vfs.FS, name string) error {
			return vfs.ReplaceFile(fsys, name, storetest.ReadAll(t, fsys, name)[:100])
		},
	} {
		fsys := vfs.NewMem()
		o := stores.With(harness.Harness{FS: fsys}, &kv.Options{SeparateFrom: 100})
		db, err := kv.Open("db", o)
		require.NoError(t, err)
		m := storetest.Model{}
		for i := range 40 {
			k := fmt.Sprintf("key%02d", i)
			m[k] = strings.Repeat(k, 30)
			require.NoError(t, db.Set([]byte(k), []byte(m[k]), kv.NoSync))
			if i == 19 {
				require.NoError(t, db.Flush(t.Context()))
			}
		}
		require.NoError(t, db.Close())
		name := "db/" + storetest.BlobsOnDisk(t, fsys, "db")[0]
		require.NoError(t, damage(fsys, name))
		_, err = kv.Open("db", o)
		require.ErrorIs(t, err, kv.ErrCorruption)
		require.ErrorContains(t, err, name)
		told := 0
		o.TolerateMissingValues = true
		o.Events.Quarantined = func(err error) {
			told++
			require.ErrorContains(t, err, name)
		}
		db, err = kv.Open("db", o)
		require.NoError(t, err)
		require.Equal(t, 1, told)
		for _, back := range []bool{false, true} {
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			lost := passDamage(t, it, m, back, func(err error) { require.ErrorIs(t, err, kv.ErrCorruption) })
			require.Equal(t, 20, lost, what)
			require.NoError(t, it.Close())
		}
		requireKeys(t, db, m)
		_, err = db.Get([]byte("key00"))
		require.ErrorIs(t, err, kv.ErrCorruption)
		require.ErrorContains(t, err, name)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		for i := range 20 {
			k := fmt.Sprintf("key%02d", i)
			m[k] = k + " again"
			stores.Set(t, db, k, m[k])
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		storetest.RequireContents(t, m, db)
		require.NoError(t, db.Close())
		o.TolerateMissingValues = false
		db, err = kv.Open("db", o)
		require.NoError(t, err, "what was overwritten is not needed any more")
		storetest.RequireContents(t, m, db)
		require.NoError(t, db.Close())
	}
}
