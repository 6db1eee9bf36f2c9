package values

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

func TestSeparatedValuesAreRead(t *testing.T) {
	fsys := vfs.NewMem()
	db, clock, m := stores.Separated(t, fsys)
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	storetest.RequireBlobs(t, db)
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.Close())

	// Whatever the option is then: separated values stay, and are read.
	db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys},
		&kv.Options{Merger: kv.Append(","), Clock: clock.Time}))
	require.NoError(t, err)
	files := storetest.RequireBlobs(t, db)
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.DeleteRange(nil, []byte("key058"), nil))
	m = storetest.Model{"key058": m["key058"], "key059": m["key059"]}
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Less(t, storetest.RequireBlobs(t, db), files, "files whose values are gone are gone")
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.DeleteRange(nil, nil, nil))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Zero(t, storetest.RequireBlobs(t, db))
	require.NoError(t, db.Close())
}

func TestSeparatedValuesExpire(t *testing.T) {
	db, clock, m := stores.Separated(t, vfs.NewMem())
	clock.Advance(time.Hour)
	for k, v := range m {
		if n := 0; len(v) > 0 {
			_, err := fmt.Sscanf(k, "key%03d", &n)
			require.NoError(t, err)
			if n%5 == 0 && !strings.HasSuffix(v, ",more") {
				delete(m, k)
			}
		}
	}
	for k, v := range m {
		if strings.HasSuffix(v, ",more") { // operands outlive what they are over
			got, err := db.Get([]byte(k))
			require.NoError(t, err)
			m[k] = string(got)
		}
	}
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	storetest.RequireBlobs(t, db)
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.Close())
}

// What needs no value reads no blob file: all of them may be gone.
func TestKeysAndSizesReadNoBlobFile(t *testing.T) {
	fsys := vfs.NewMem()
	db, _, m := stores.Separated(t, fsys)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	names, err := fsys.List("db")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, ".blob") {
			require.NoError(t, fsys.Remove(filepath.Join("db", name)))
		}
	}
	lost := 0
	for k, v := range m {
		if strings.HasSuffix(v, ",more") {
			continue // operands over a value that expires have to be combined with it
		}
		has, err := db.Has([]byte(k))
		require.NoError(t, err)
		require.True(t, has)
		size, err := db.GetSize([]byte(k))
		require.NoError(t, err)
		require.Equal(t, len(v), size)
		_, err = db.Expiry([]byte(k))
		require.NoError(t, err)
		if _, err = db.Get([]byte(k)); err != nil {
			require.ErrorContains(t, err, ".blob")
			lost++
		}
	}
	require.Positive(t, lost)
	for _, back := range []bool{false, true} {
		it, err := db.NewIter(&kv.IterOptions{KeysOnly: true})
		require.NoError(t, err)
		n := 0
		move, next := it.First, it.Next
		if back {
			move, next = it.Last, it.Prev
		}
		for ok := move(); ok; ok = next() {
			v := m[string(it.Key())]
			require.True(t, it.ValueSize() == len(v) || it.ValueSize() == -1 && strings.HasSuffix(v, ",more"))
			n++
		}
		require.NoError(t, it.Error())
		require.Len(t, m, n)
		require.NoError(t, it.Close())
	}
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		require.True(t, m[string(it.Key())] == string(it.Value()))
	}
	require.ErrorContains(t, it.Error(), ".blob", "a value that cannot be read ends the walk")
	require.Error(t, it.Close())
	_, err = db.MultiGet([][]byte{[]byte("key050"), []byte("key051"), []byte("key052"), []byte("key053")})
	require.ErrorContains(t, err, ".blob")
	_ = db.Close()
}

// Compactions copy handles: no blob file is written for values that are separated already.
func TestCompactionsPassHandlesOn(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys}, &kv.Options{SeparateFrom: 100}))
	require.NoError(t, err)
	value := bytes.Repeat([]byte("0123456789"), 1000)
	for i := range 50 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%03d", i), value, kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.Equal(t, 1, storetest.RequireBlobs(t, db))
	before := totalsOf(t, db)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Equal(t, before, totalsOf(t, db))
	require.EqualValues(t, 50, before.LiveRecords)
	require.EqualValues(t, before.RecordBytes, before.LiveBytes)
	tables := int64(0)
	for _, l := range db.Metrics().Levels {
		tables += l.Bytes
	}
	require.Less(t, tables, int64(8<<10), "tables have 40 bytes for a value of 10,000")
	require.NoError(t, db.Close())
}

func TestACheckpointHasItsBlobFiles(t *testing.T) {
	fsys := vfs.NewMem()
	db, clock, m := stores.Separated(t, fsys)
	require.NoError(t, db.Checkpoint(t.Context(), "copy"))
	require.NoError(t, db.DeleteRange(nil, nil, nil))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Zero(t, storetest.RequireBlobs(t, db))
	require.NoError(t, db.Close())
	db, err := kv.Open("copy", stores.With(harness.Harness{FS: fsys},
		&kv.Options{Merger: kv.Append(","), Clock: clock.Time}))
	require.NoError(t, err)
	stores.RequireSeparated(t, db, m)
	require.Positive(t, storetest.RequireBlobs(t, db))
	require.NoError(t, db.Close())
}

// Blob files that no manifest lists are removed, and one that is missing or cut short keeps the store
// from being opened, by name.
func TestOpenKnowsItsBlobFiles(t *testing.T) {
	fsys := vfs.NewMem()
	db, clock, m := stores.Separated(t, fsys)
	files := storetest.RequireBlobs(t, db)
	names := storetest.BlobNames(t, db)
	name := names[len(names)-1]
	require.NoError(t, db.Close())
	o := stores.With(harness.Harness{FS: fsys}, &kv.Options{Merger: kv.Append(","), Clock: clock.Time})
	require.NoError(t, vfs.ReplaceFile(fsys, "db/900000.blob", []byte("left by a crash")))
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	require.Equal(t, files, storetest.RequireBlobs(t, db))
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.Close())

	require.NoError(t, vfs.ReplaceFile(fsys, name, []byte("short")))
	_, err = kv.Open("db", o)
	require.ErrorIs(t, err, kv.ErrCorruption)
	require.ErrorContains(t, err, name)
	require.NoError(t, fsys.Remove(name))
	_, err = kv.Open("db", o)
	require.ErrorIs(t, err, kv.ErrCorruption)
	require.ErrorContains(t, err, name)
}

// Where reads have to be waited for, many values are read side by side, and are the same; each takes one
// read, or neighbours one together, and what is asked of keys alone takes none.
func TestSeparatedValuesOfASlowDevice(t *testing.T) {
	fsys := &vfstest.SlowReadFS{FS: vfs.NewMem(), Blobs: true}
	db, clock, m := stores.Separated(t, fsys)
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.Close())
	db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys},
		&kv.Options{Merger: kv.Append(","), Clock: clock.Time,
			CacheSize: -1}))
	require.NoError(t, err)
	fsys.Delay.Store(int64(20 * values.DeviceWait))
	var keys [][]byte
	long := 0
	for k, v := range m {
		if keys = append(keys, []byte(k)); len(v) > 1000 && !strings.HasSuffix(v, ",more") {
			long++
		}
	}
	fsys.Reset()
	values, err := db.MultiGet(keys)
	require.NoError(t, err)
	for i, k := range keys {
		require.True(t, m[string(k)] == string(values[i]))
	}
	require.Greater(t, fsys.MaxReads.Load(), int64(1))
	require.Positive(t, fsys.Reads.Load())
	require.Less(t, fsys.Reads.Load(), int64(long), "neighbours are read together")
	fsys.Reset()
	for _, k := range keys {
		_, err := db.Has(k)
		require.NoError(t, err)
	}
	require.Zero(t, fsys.Reads.Load())
	require.NoError(t, db.Close())
}

// A damaged record costs its value alone: that is an error with file and offset, all others are right, and
// so are keys and sizes.
func TestADamagedValueIsNamedAndTheOthersAreRead(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	db, clock, m := stores.Separated(t, fsys)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	names := storetest.BlobNames(t, db)
	require.NoError(t, db.Close())
	rng := rand.New(rand.NewPCG(4, 4))
	damaged := 0
	for _, name := range names {
		whole := storetest.ReadAll(t, fsys, name)
		for range 20 {
			bad := bytes.Clone(whole)
			at := rng.IntN(len(bad))
			bad[at] ^= 1 << rng.IntN(8)
			require.NoError(t, vfs.ReplaceFile(fsys, name, bad))
			db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys},
				&kv.Options{Merger: kv.Append(","), Clock: clock.Time,
					ReadOnly: true}))
			require.NoError(t, err)
			lost := 0
			for k, v := range m {
				got, err := db.Get([]byte(k))
				size, sizeErr := db.GetSize([]byte(k))
				if err == nil {
					require.NoError(t, sizeErr)
					require.True(t, v == string(got) && size == len(v))
					continue
				}
				storetest.RequireDamage(t, err, name, -1)
				lost++
			}
			require.LessOrEqual(t, lost, 1)
			damaged += lost
			require.NoError(t, db.Close())
		}
		require.NoError(t, vfs.ReplaceFile(fsys, name, whole))
	}
	require.Greater(t, damaged, 20)
}
