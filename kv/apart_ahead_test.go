package kv

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// held is how many bytes an iterator has of what it read on.
func (on *readOn) held() int { return on.blobs.Memory() + cap(on.memory) }

// What an iterator reads on is bounded as it has it in memory, not as it is stored.
func TestReadingOnIsBoundedByWhatValuesDecodeTo(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "it is about sizes")
	for _, c := range []sstable.Compression{sstable.Snappy, sstable.Zstd} {
		db, err := Open("db", &Options{fs: vfs.NewMem(), SeparateFrom: 100, Compression: c})
		require.NoError(t, err)
		m := model{}
		for i := range 200 {
			k := fmt.Sprintf("key%03d", i)
			m[k] = strings.Repeat(k+"a value that is repeated ", 100+i%3*5000)
			require.NoError(t, db.Set([]byte(k), []byte(m[k]), NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
		require.Positive(t, requireBlobs(t, db))
		db.tables.Far, db.tables.Parts.Limit = true, 64<<20 // it waits for what it reads
		for _, back := range []bool{false, true} {
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			move, next := it.First, it.Next
			if back {
				move, next = it.Last, it.Prev
			}
			most, n := 0, 0
			for ok := move(); ok; ok = next() {
				require.True(t, m[string(it.Key())] == string(it.Value()))
				most = max(most, it.c.parts.on.held())
				n++
			}
			require.NoError(t, it.Error())
			require.Equal(t, len(m), n)
			require.Greater(t, most, waitOn/4, "it reads on")
			require.Less(t, most, 2*waitOn)
			require.NoError(t, it.Close())
		}
		db.tables.Far = false
		require.NoError(t, db.Close())
	}
}

// A long value behind short ones is read when the iterator comes to it.
func TestALongValueIsNotReadOn(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes")
	db, err := Open("db", &Options{fs: vfs.NewMem(), SeparateFrom: 100})
	require.NoError(t, err)
	rng, m := rand.New(rand.NewPCG(6, 6)), model{}
	for i := range 30 {
		k, size := fmt.Sprintf("key%03d", i), 1000
		if i%10 == 9 {
			size = 5 << 20
		}
		m[k] = string(randomBytes(rng, size))
		require.NoError(t, db.Set([]byte(k), []byte(m[k]), NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	db.settle()
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
			require.Less(t, it.c.parts.on.held(), waitOn)
			n++
		}
		require.NoError(t, it.Error())
		require.Equal(t, len(keys), n)
		require.NoError(t, it.Close())
	}
	require.NoError(t, db.Close())
}
