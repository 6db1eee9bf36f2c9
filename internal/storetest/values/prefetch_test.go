package values

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

const (
	manyVersions = 16        // of a key: more than an iterator passes one by one
	coldBytes    = 1 << 20   // that an iterator prefetches if reads take long
	soloSize     = 256 << 10 // of a value that is read alone
)

// What an iterator prefetches is bounded as it has it in memory, not as it is stored.
func TestPrefetchesAreBoundedByWhatValuesDecodeTo(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "it is about sizes")
	for _, c := range []sstable.Compression{sstable.Snappy, sstable.Zstd} {
		db, err := kv.Open("db", stores.With(harness.Harness{FS: vfs.NewMem()},
			&kv.Options{SeparateFrom: 100, Compression: c}))
		require.NoError(t, err)
		m := storetest.Model{}
		for i := range 200 {
			k := fmt.Sprintf("key%03d", i)
			m[k] = strings.Repeat(k+"a value that is repeated ", 100+i%3*5000)
			require.NoError(t, db.Set([]byte(k), []byte(m[k]), kv.NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
		require.Positive(t, storetest.RequireBlobs(t, db))
		tables := tablesOf(t, db)
		tables.Far, tables.Parts.Limit = true, 64<<20 // it waits for what it reads
		for _, back := range []bool{false, true} {
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			move, next := it.First, it.Next
			if back {
				move, next = it.Last, it.Prev
			}
			var lengths []int        // of values that are not read alone
			var reads, from []uint64 // after each move; of lengths, where it began
			reads = append(reads, db.Metrics().Blobs.Reads)
			n := 0
			for ok := move(); ok; ok = next() {
				value := m[string(it.Key())]
				require.True(t, value == string(it.Value()))
				from, reads = append(from, uint64(len(lengths))), append(reads, db.Metrics().Blobs.Reads)
				if len(value) < soloSize {
					lengths = append(lengths, len(value))
				}
				n++
			}
			most := 0 // bytes of one move
			for i, first := range from {
				sum := 0
				for k := first; k < min(first+reads[i+1]-reads[i], uint64(len(lengths))); k++ {
					sum += lengths[k]
				}
				most = max(most, sum)
			}
			require.NoError(t, it.Error())
			require.Equal(t, len(m), n)
			require.Greater(t, most, coldBytes/4, "it prefetches")
			require.Less(t, most, 2*coldBytes)
			require.NoError(t, it.Close())
		}
		tables.Far = false
		require.NoError(t, db.Close())
	}
}

// A long value behind short ones is read when the iterator comes to it.
func TestALongValueIsNotPrefetched(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes")
	db, err := kv.Open("db", stores.With(harness.Harness{FS: vfs.NewMem()}, &kv.Options{SeparateFrom: 100}))
	require.NoError(t, err)
	rng, m := rand.New(rand.NewPCG(6, 6)), storetest.Model{}
	for i := range 30 {
		k, size := fmt.Sprintf("key%03d", i), 1000
		if i%10 == 9 {
			size = 5 << 20
		}
		m[k] = string(storetest.RandomBytes(rng, size))
		require.NoError(t, db.Set([]byte(k), []byte(m[k]), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	harness.Settle(db)
	was := db.Metrics().Blobs.Read
	for _, back := range []bool{false, true} {
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		keys, move, next := sortedKeys(m), it.First, it.Next
		if back {
			move, next = it.Last, it.Prev
			was = db.Metrics().Blobs.Read
		}
		read, n := uint64(0), 0
		for ok := move(); ok; ok = next() {
			i := n
			if back {
				i = len(keys) - 1 - n
			}
			require.Equal(t, keys[i], string(it.Key()))
			require.True(t, m[keys[i]] == string(it.Value()))
			if len(m[keys[i]]) > 1<<20 {
				read += 5 << 20
			}
			require.Less(t, db.Metrics().Blobs.Read-was, read+1<<20)
			n++
		}
		require.NoError(t, it.Error())
		require.Equal(t, len(keys), n)
		require.NoError(t, it.Close())
	}
	require.NoError(t, db.Close())
}
