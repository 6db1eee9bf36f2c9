package kv

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

// requireKeys requires that what needs no value does not notice that values are damaged: Has, GetSize and
// iterators for keys, in both directions. Keys whose operands must be combined with a value are left out.
func requireKeys(t *testing.T, db *DB, m model) {
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
		it, err := db.NewIter(&IterOptions{KeysOnly: true})
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
func requireRightOrNamed(t *testing.T, db *DB, m model, names []string) (lost int) {
	t.Helper()
	named := func(err error) {
		t.Helper()
		var ce *CorruptionError
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
	for _, back := range []bool{false, true} {
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		move, next := it.First, it.Next
		if back {
			move, next = it.Last, it.Prev
		}
		n := 0
		for ok := move(); ok; ok = next() {
			require.True(t, m[string(it.Key())] == string(it.Value()))
			n++
		}
		if err := it.Error(); err != nil {
			named(err)
		} else {
			require.Zero(t, lost)
			require.Len(t, m, n)
		}
		_ = it.Close()
	}
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
	for what, damage := range damagedBlobs {
		t.Run(what, func(t *testing.T) {
			fsys := vfs.NewMem()
			db, clock, m := apartStore(t, fsys)
			var names []string
			for b := range db.current.Blobs() {
				names = append(names, filepath.Join("db", b.Name()))
			}
			require.NoError(t, db.Close())
			x, y := damage(readAll(t, fsys, names[0]), readAll(t, fsys, names[1]))
			require.NoError(t, vfs.ReplaceFile(fsys, names[0], x))
			require.NoError(t, vfs.ReplaceFile(fsys, names[1], y))
			db, err := Open("db", &Options{fs: fsys, Merger: Append(","), Clock: clock.time})
			require.NoError(t, err)
			lost := requireRightOrNamed(t, db, m, names)
			require.Equal(t, what != "whole", lost > 0)
			requireKeys(t, db, m)
			require.NoError(t, db.Compact(nil, nil), "a compaction passes handles on")
			require.GreaterOrEqual(t, requireRightOrNamed(t, db, m, names), 0)
			requireKeys(t, db, m)
			_ = db.Close()
		})
	}
}
