package kv

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/scale"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// An olderVersion is what lies under the newer version of a key.
type olderVersion struct {
	name  string
	write func(t *testing.T, db *DB, key []byte)
}

var olderVersions = []olderVersion{
	{"a value", func(t *testing.T, db *DB, key []byte) { require.NoError(t, db.Set(key, []byte("old"), NoSync)) }},
	{"a tombstone", func(t *testing.T, db *DB, key []byte) { require.NoError(t, db.Delete(key, NoSync)) }},
	{"operands", func(t *testing.T, db *DB, key []byte) {
		for range 20 { // enough for a fold
			require.NoError(t, db.Merge(key, []byte("+"), NoSync))
		}
	}},
	{"an expired value", func(t *testing.T, db *DB, key []byte) {
		require.NoError(t, db.SetTTL(key, []byte("old"), time.Nanosecond, NoSync))
	}},
	{"versions that snapshots keep", func(t *testing.T, db *DB, key []byte) {
		for range manyVersions {
			require.NoError(t, db.Set(key, []byte("old"), NoSync))
			s := db.NewSnapshot()
			defer func() { require.NoError(t, s.Close()) }()
		}
		require.NoError(t, db.Flush(t.Context()))
	}},
}

// sharedKey is one of the keys: of some shapes the first eight bytes tell nothing, or all.
func sharedKey(shape string, i int) []byte { return fmt.Appendf(nil, shape, i) }

const sharedKeys = 40

// writeShared makes a store in which all places have versions of the same keys: the table that
// steps are taken in, or the memtable, is the newest of every third key.
func writeShared(t *testing.T, o *Options, shape string, older olderVersion, inMemory bool) *DB {
	o.Merger, o.L0CompactionThreshold = modelMerger, 100
	o.Clock = (&storetest.Clock{}).Time
	db := openMem(t, o)
	if o.MemoryMap { // which takes files
		db = openDir(t, t.TempDir(), o)
	}
	older.write(t, db, sharedKey(shape, 0))
	for i := 0; i < sharedKeys; i += 2 {
		require.NoError(t, db.Set(sharedKey(shape, i), []byte("bottom"), NoSync))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for i := 1; i < sharedKeys; i += 3 {
		older.write(t, db, sharedKey(shape, i))
	}
	if !inMemory { // else the versions below are in the memtable, of which a step knows no more
		require.NoError(t, db.Flush(t.Context()))
	}
	return db
}

// newer writes the newer versions, all but every fifth, and returns what a reader then sees.
func newer(t *testing.T, db *DB, shape string) (keys []string, values map[string]string) {
	values = map[string]string{}
	for i := range sharedKeys {
		key := sharedKey(shape, i)
		if i%5 == 4 {
			require.NoError(t, db.Delete(key, NoSync))
			continue
		}
		require.NoError(t, db.Set(key, fmt.Appendf(nil, "new %d", i), NoSync))
		values[string(key)] = fmt.Sprintf("new %d", i)
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	return keys, values
}

// Of a key that several places have, an iterator shows the newest version, once, from wherever
// and in whatever direction it comes, whether it steps in one table or goes through all of them.
func TestIteratorsShowAKeyOfSeveralPlacesOnce(t *testing.T) {
	scale.OneGoroutine(t, "iterators of one goroutine")
	t.Parallel()
	for n, o := range []Options{
		{Compression: sstable.NoCompression}, {Compression: sstable.Snappy},
		{Compression: sstable.NoCompression, MemoryMap: true, CacheSize: 16 << 10},
	} {
		for _, shape := range []string{"%02d", "a common beginning %02d"} {
			for at, older := range olderVersions {
				for to, place := range []string{"table", "memtable", "run"} {
					if (n+at+to)%scale.Stride(3, 1) > 0 {
						continue
					}
					name := fmt.Sprintf("%s/%v/%s/%s/%v", older.name, o.Compression, shape, place, o.MemoryMap)
					opts := o
					opts.BlockSize = 256
					db := writeShared(t, &opts, shape, older, place == "memtable")
					before := db.NewSnapshot()
					past, pastValues := sharedContents(t, before)
					keys, values := newer(t, db, shape)
					s := db.NewSnapshot()
					switch place {
					case "table":
						require.NoError(t, db.Flush(t.Context()))
					case "run":
						require.NoError(t, db.Compact(t.Context(), nil, nil))
					}
					older.write(t, db, sharedKey(shape, 3)) // what the snapshot does not see
					require.NoError(t, db.Flush(t.Context()))
					for range 2 { // of blocks that are not in the cache, and of those that are
						walkShared(t, name, s, shape, keys, values)
						walkShared(t, name+" past", before, shape, past, pastValues)
					}
					require.NoError(t, s.Close())
					require.NoError(t, before.Close())
					require.NoError(t, db.Close())
				}
			}
		}
	}
}

// sharedContents is what Get says of all keys.
func sharedContents(t *testing.T, r Reader) (keys []string, values map[string]string) {
	values = map[string]string{}
	for _, shape := range []string{"%02d", "a common beginning %02d"} {
		for i := range sharedKeys {
			key := sharedKey(shape, i)
			v, err := r.Get(key)
			if err == nil {
				values[string(key)] = string(v)
				keys = append(keys, string(key))
				continue
			}
			require.ErrorIs(t, err, ErrNotFound)
		}
	}
	slices.Sort(keys)
	return keys, values
}

// walkShared goes from every key on some steps forward, back and forward again, and through all,
// within several bounds.
func walkShared(t *testing.T, name string, r Reader, shape string, all []string, values map[string]string) {
	lower, upper := sharedKey(shape, 7), sharedKey(shape, 31)
	for _, o := range []IterOptions{{}, {LowerBound: lower, UpperBound: upper}, {UpperBound: upper[:len(upper)-1]}} {
		keys := slices.DeleteFunc(slices.Clone(all), func(k string) bool {
			return k < string(o.LowerBound) || o.UpperBound != nil && k >= string(o.UpperBound)
		})
		it, err := r.NewIter(&o)
		require.NoError(t, err)
		on := func(ok bool, at int) {
			require.NoError(t, it.Error(), name)
			require.Equal(t, at >= 0 && at < len(keys), ok, name)
			if ok && (keys[at] != string(it.Key()) || values[keys[at]] != string(it.Value())) {
				require.Equal(t, keys[at], string(it.Key()), name)
				require.Equal(t, values[keys[at]], string(it.Value()), name)
			}
		}
		on(it.First(), 0)
		for at := range keys {
			on(it.Next(), at+1)
		}
		on(it.Last(), len(keys)-1)
		for at := range slices.Backward(keys) {
			on(it.Prev(), at-1)
		}
		for from := range keys {
			for steps := 0; steps < 4 && from+steps < len(keys); steps++ {
				on(it.SeekGE([]byte(keys[from])), from)
				for n := range steps {
					on(it.Next(), from+n+1)
				}
				if on(it.Prev(), from+steps-1); it.Valid() {
					on(it.Next(), from+steps)
					on(it.Next(), from+steps+1)
				}
			}
		}
		require.NoError(t, it.Close())
	}
}

// Calls of an iterator that is closed see nothing of the iterators that use its memory by then.
func TestHandlesOfClosedIteratorsSeeNothingOfOthers(t *testing.T) {
	db := openMem(t, &Options{BlockSize: 256})
	for i := range 200 {
		require.NoError(t, db.Set(sharedKey("%03d", i), []byte(strings.Repeat("v", i)), NoSync))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				it, err := db.NewIter(nil)
				if err != nil {
					t.Error(err)
					return
				}
				n := 0
				for ok := it.First(); ok; ok = it.Next() {
					n += len(it.Value())
				}
				if err := it.Close(); n != 199*200/2 || err != nil {
					t.Error(n, err)
				}
				runtime.Gosched() // on one processor the loop below would wait for the end of a slice of time
			}
		})
	}
	for range 500 {
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		require.True(t, it.SeekGE([]byte("100")))
		require.True(t, it.Next())
		require.NoError(t, it.Close())
		runtime.Gosched()
		require.False(t, it.Valid())
		require.Nil(t, it.Key())
		require.Nil(t, it.Value())
		require.False(t, it.Next() || it.Prev())
		require.False(t, it.First() || it.Last() || it.SeekGE(nil) || it.SeekLT([]byte("x")))
		require.ErrorIs(t, it.Error(), ErrClosed)
		require.NoError(t, it.Close())
	}
	done.Store(true)
	wg.Wait()
}
