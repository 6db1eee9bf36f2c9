package values

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// sortedKeys returns the keys of a model in order.
func sortedKeys(m storetest.Model) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// tablesOf returns the open tables of a store.
func tablesOf(t *testing.T, db *kv.DB) *tablecache.Cache {
	t.Helper()
	f, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	defer release()
	return f.Tables
}

// totalsOf returns the totals of a store's blob files.
func totalsOf(t *testing.T, db *kv.DB) version.BlobTotals {
	t.Helper()
	f, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	defer release()
	return f.Version.BlobTotals()
}

// manySeparated has keys with values of all lengths, most of which are separated, those of one key in three newer than
// the others; keys with many versions, operands, values that expire, and operands over some.
func manySeparated(t *testing.T, fsys vfs.FS) (*kv.DB, *storetest.Clock, storetest.Model) {
	t.Helper()
	clock := &storetest.Clock{}
	db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys, BlobSize: 300 << 10}, &kv.Options{SeparateFrom: 100,
		Merger:                kv.Append(","),
		L0CompactionThreshold: 100, Clock: clock.Time, Compression: sstable.NoCompression}))
	require.NoError(t, err)
	rng, m := rand.New(rand.NewPCG(9, 9)), storetest.Model{}
	for round := range 3 {
		for i := 0; i < 500; i += 1 + round {
			k, v := fmt.Sprintf("key%03d", i), strings.Repeat(fmt.Sprint(i, round, " "), 1+rng.IntN(1+rng.IntN(2000)))
			switch {
			case i%17 == 0 && round > 0:
				require.NoError(t, db.Merge([]byte(k), []byte("more"), kv.NoSync))
				v = strings.TrimPrefix(m[k]+",more", ",")
			case i%5 == 0:
				require.NoError(t, db.SetTTL([]byte(k), []byte(v), time.Duration(1+i)*time.Hour, kv.NoSync))
			case i%40 == 1:
				for range manyVersions {
					require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
				}
			default:
				require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
			}
			m[k] = v
		}
		require.NoError(t, db.Flush(t.Context()))
		if round == 0 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	}
	harness.Settle(db) // a collection reads blob files too
	return db, clock, m
}

// Wherever an iterator turns or seeks while it reads on, it shows what is there.
func TestIteratorsThatReadOnTurnAndSeek(t *testing.T) {
	t.Parallel()
	db, _, m := manySeparated(t, vfs.NewMem())
	keys := sortedKeys(m)
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 3))
	at := -1
	for range 2000 {
		ok := false
		switch n := rng.IntN(10); {
		case n == 0 || at < 0 || at >= len(keys):
			at = rng.IntN(len(keys))
			ok = it.SeekGE([]byte(keys[at]))
		case n == 1:
			at = rng.IntN(len(keys))
			ok = it.SeekLT([]byte(keys[at] + "x"))
		default:
			for left := rng.IntN(1 + rng.IntN(100)); left >= 0; left-- {
				if n < 6 {
					at, ok = at+1, it.Next()
				} else {
					at, ok = at-1, it.Prev()
				}
				if at < 0 || at >= len(keys) {
					break
				}
				require.True(t, ok, it.Error())
				require.Equal(t, keys[at], string(it.Key()))
				require.True(t, m[keys[at]] == string(it.Value()), keys[at])
				require.Equal(t, len(m[keys[at]]), it.ValueSize())
			}
		}
		require.Equal(t, at >= 0 && at < len(keys), ok)
		require.Equal(t, ok, it.Valid())
		require.NoError(t, it.Error())
	}
	require.NoError(t, it.Close())
	require.NoError(t, db.Close())
}

// A scan has its values with few reads, some at a time where they have to be waited for; a scan of three entries,
// and one for keys, no more than they need.
func TestIteratorsReadNeighboursTogether(t *testing.T) {
	t.Parallel()
	fsys := &vfstest.SlowReadFS{FS: vfs.NewMem(), Blobs: true}
	db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys}, &kv.Options{SeparateFrom: 100,
		Compression: sstable.NoCompression}))
	require.NoError(t, err)
	const n = 400
	for i := range n {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%03d", i), bytes.Repeat([]byte{byte(i)}, 16<<10), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	for _, delay := range []time.Duration{0, 2 * values.DeviceWait} {
		fsys.Delay.Store(int64(delay))
		for _, back := range []bool{false, true} {
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			fsys.Reset()
			move, next := it.First, it.Next
			if back {
				move, next = it.Last, it.Prev
			}
			seen := 0
			for ok := move(); ok; ok = next() {
				if seen++; seen == 2 {
					require.EqualValues(t, 2, fsys.Reads.Load(), "one for each")
				}
			}
			require.Equal(t, n, seen)
			require.Less(t, fsys.Reads.Load(), int64(n/6))
			require.True(t, delay == 0 || fsys.MaxReads.Load() > 1)
			require.NoError(t, it.Close())
		}
	}
	b := db.Metrics().Blobs
	require.EqualValues(t, 4*n, b.Reads)
	require.EqualValues(t, 4*totalsOf(t, db).LiveBytes, b.Read)
	fsys.Reset()
	it, err := db.NewIter(&kv.IterOptions{KeysOnly: true})
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		require.Equal(t, 16<<10, it.ValueSize())
	}
	require.NoError(t, it.Close())
	require.Zero(t, fsys.Reads.Load())
	require.NoError(t, db.Close())
}

// What expires after it was read on, and before the iterator reaches it, is passed over.
func TestWhatExpiresAfterItWasReadOnIsNotShown(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		db, clock, m := manySeparated(t, vfs.NewMem())
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		move, next := it.First, it.Next
		keys := sortedKeys(m)
		if back {
			move, next = it.Last, it.Prev
			slices.Reverse(keys)
		}
		passed := 0
		ok := move()
		for n, k := range keys {
			if i := 0; n >= 20 {
				if n == 20 {
					clock.Advance(250 * time.Hour)
				}
				_, err := fmt.Sscanf(k, "key%03d", &i)
				require.NoError(t, err)
				if n > 20 && ok && !it.Expiry().IsZero() {
					require.True(t, it.Expiry().After(clock.Time()))
				}
				if i%5 == 0 && i < 249 && !strings.HasSuffix(m[k], ",more") && (n > 20 || string(it.Key()) != k) {
					require.NotEqual(t, k, string(it.Key()))
					passed++
					continue
				}
			}
			require.True(t, ok, it.Error())
			if require.Equal(t, k, string(it.Key())); !strings.HasSuffix(m[k], ",more") {
				require.True(t, m[k] == string(it.Value()))
			}
			ok = next()
		}
		require.False(t, ok)
		require.Greater(t, passed, 20)
		require.NoError(t, it.Close())
		require.NoError(t, db.Close())
	}
}

// A value that is damaged is an error when the iterator comes to it, and not before.
func TestADamagedValueEndsAScanWhereItIs(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := kv.Open("db", stores.With(harness.Harness{FS: fsys}, &kv.Options{SeparateFrom: 100,
		Compression: sstable.NoCompression}))
	require.NoError(t, err)
	const n, bad = 200, 77
	for i := range n {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%03d", i), bytes.Repeat([]byte{byte(i)}, 1000), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	names := storetest.BlobNames(t, db)
	name := names[len(names)-1]
	require.NoError(t, db.Close())
	file := storetest.ReadAll(t, fsys, name)
	file[bytes.Index(file, bytes.Repeat([]byte{bad}, 900))] ^= 1
	require.NoError(t, vfs.ReplaceFile(fsys, name, file))
	db, err = kv.Open("db", stores.With(harness.Harness{FS: fsys}, &kv.Options{}))
	require.NoError(t, err)
	for _, back := range []bool{false, true} {
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		want, move, next := bad, it.First, it.Next
		if back {
			want, move, next = n-bad-1, it.Last, it.Prev
		}
		seen := 0
		for ok := move(); ok; ok = next() {
			seen++
		}
		require.Equal(t, want, seen)
		storetest.RequireDamage(t, it.Error(), name, -1)
		require.True(t, it.SeekGE([]byte("key078")))
		for range n - bad - 2 {
			require.True(t, it.Next())
		}
		require.False(t, it.Next())
		require.NoError(t, it.Close())
	}
	var keys [][]byte
	for i := range n {
		keys = append(keys, fmt.Appendf(nil, "key%03d", i))
	}
	for _, asked := range [][][]byte{keys, {keys[bad]}} {
		_, err = db.MultiGet(asked)
		storetest.RequireDamage(t, err, name, -1)
		damaged, ok := errors.AsType[*kv.ValueError](err)
		require.True(t, ok)
		require.Equal(t, keys[bad], damaged.Key)
	}
	values, err := db.MultiGet(slices.Delete(keys, bad, bad+1))
	require.NoError(t, err)
	for i, v := range values {
		if i >= bad {
			i++
		}
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, 1000), v)
	}
	require.NoError(t, db.Close())
}

// MultiGet reads neighbours together, and what it returns is the caller's: no two values share memory.
func TestMultiGetReadsNeighboursTogether(t *testing.T) {
	fsys := &vfstest.SlowReadFS{FS: vfs.NewMem(), Blobs: true}
	db, _, m := manySeparated(t, fsys)
	keys := sortedKeys(m)
	var asked [][]byte
	for _, k := range keys {
		asked = append(asked, []byte(k))
	}
	fsys.Reset()
	values, err := db.MultiGet(asked)
	require.NoError(t, err)
	require.Less(t, fsys.Reads.Load(), int64(len(keys)/2))
	for i, k := range keys {
		require.True(t, m[k] == string(values[i]), k)
		for n := range values[i] {
			values[i][n] = 'x'
		}
	}
	again, err := db.MultiGet(asked)
	require.NoError(t, err)
	for i, k := range keys {
		require.True(t, m[k] == string(again[i]), k)
		require.Equal(t, strings.Repeat("x", len(m[k])), string(values[i]))
	}
	require.NoError(t, db.Close())
}

// What iterators read on where reads are requests is counted by the budget for that, until they are closed, and
// one that finds no room reads one value after the other.
func TestWhatIsReadOnIsCounted(t *testing.T) {
	fsys := &vfstest.SlowReadFS{FS: vfs.NewMem(), Blobs: true}
	db, _, m := manySeparated(t, fsys)
	tables := tablesOf(t, db)
	tables.Far, tables.Parts.Limit = true, 3*coldBytes/2
	keys := sortedKeys(m)
	for range 2 {
		var its []*kv.Iterator
		for n := range 2 {
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			its = append(its, it)
			fsys.Reset()
			for i, ok := 0, it.First(); ok; ok, i = it.Next(), i+1 {
				require.Equal(t, keys[i], string(it.Key()))
				require.True(t, m[keys[i]] == string(it.Value()))
			}
			require.Equal(t, n == 0, fsys.Reads.Load() < int64(len(keys)/2))
			require.EqualValues(t, coldBytes, tables.Parts.Used())
		}
		require.NoError(t, its[0].Close())
		require.NoError(t, its[1].Close())
		require.Zero(t, tables.Parts.Used())
	}
	require.NoError(t, db.Close())
}

// Blob files count among the files that may be open, and are opened again when they are read.
func TestOpenBlobFilesAreBounded(t *testing.T) {
	o := stores.With(harness.Harness{FS: vfs.OS, BlobSize: 8 << 10}, &kv.Options{MaxOpenFiles: 4, CacheSize: -1,
		SeparateFrom: 100, Compression: sstable.NoCompression})
	db := stores.OpenDir(t, t.TempDir(), o)
	want := storetest.Model{}
	var keys [][]byte
	for i := range 400 {
		k := fmt.Sprintf("%05d", i)
		want[k] = fmt.Sprintf("%0400d", i)
		keys = append(keys, []byte(k))
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), kv.Async))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.Greater(t, storetest.RequireBlobs(t, db), 15)
	for range 2 {
		storetest.RequireContents(t, want, db)
		require.LessOrEqual(t, db.Metrics().OpenFiles, 4)
		values, err := db.MultiGet(keys)
		require.NoError(t, err)
		for i, v := range values {
			require.Equal(t, want[string(keys[i])], string(v))
		}
		require.LessOrEqual(t, db.Metrics().OpenFiles, 4)
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())
	require.Zero(t, db.Metrics().OpenFiles)
}

// AppendGet of a separated value allocates nothing if there is room for it, and Get the value and its handle.
func TestAppendGetOfASeparatedValueDoesNotAllocate(t *testing.T) {
	db := stores.OpenDir(t, t.TempDir(), stores.With(harness.Harness{FS: vfs.OS}, &kv.Options{SeparateFrom: 100}))
	key, value := []byte("key"), make([]byte, 16<<10)
	for i := range value {
		value[i] = byte(i * i >> 8)
	}
	for i := range value {
		value[i] ^= byte(rand.Uint32())
	}
	require.NoError(t, db.Set(key, value, kv.NoSync))
	require.NoError(t, db.Flush(t.Context()))
	dst := make([]byte, 0, len(value))
	appendGet := func() {
		got, err := db.AppendGet(dst, key)
		if err != nil || !bytes.Equal(got, value) {
			t.Error(err)
		}
	}
	get := func() {
		got, err := db.Get(key)
		if err != nil || cap(got) != len(value) {
			t.Error(err, cap(got))
		}
	}
	appendGet()
	if storetest.RaceFactor == 1 { // its pools forget
		require.Less(t, testing.AllocsPerRun(1000, appendGet), 0.2)
		require.Less(t, testing.AllocsPerRun(1000, get), 2.2)
	}
	require.NoError(t, db.Close())
}
