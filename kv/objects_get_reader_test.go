package kv

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A reader of a value in an object store asks for parts, none of which has more than the value's record; one that
// comes damaged is asked for again.
func TestAReaderOfAnObjectStoreAsksForParts(t *testing.T) {
	t.Parallel()
	s := objstoretest.NewFaults(objstore.NewMem(), 1)
	db := openObjects(t, s, &Options{SeparateFrom: 100, CacheSize: -1, MemtableSize: 64 << 20})
	rng, sizes := rand.New(rand.NewPCG(8, 8)), []int{1000, 100 << 10, 5 << 20, 1000}
	var want []string
	for i, n := range sizes {
		want = append(want, string(randomBytes(rng, n)))
		require.NoError(t, db.Set(fmt.Appendf(nil, "%03d", i), []byte(want[i]), Async))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	db = openObjects(t, s, &Options{SeparateFrom: 100, CacheSize: -1})
	var gets, bytes atomic.Int64
	var damaged atomic.Bool
	s.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind == objstore.Get && strings.HasSuffix(c.Key, ".blob") {
			bytes.Add(c.Size)
			f.Corrupt = gets.Add(1) == 1 && damaged.Load() // once: a value may be of two replies
		}
		return f
	})
	for _, sound := range []bool{true, false} {
		damaged.Store(!sound)
		for i, n := range sizes {
			gets.Store(0)
			bytes.Store(0)
			r, err := db.GetReader(fmt.Appendf(nil, "%03d", i))
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			require.NoError(t, err)
			require.True(t, want[i] == string(got))
			require.NoError(t, r.Close())
			if sound {
				require.EqualValues(t, 1+n/(2<<20), gets.Load(), "%d bytes", n)
				require.Less(t, bytes.Load(), int64(n+n/1000+100))
			} else {
				require.Greater(t, gets.Load(), int64(1+n/(2<<20)), "what was damaged was asked for again")
			}
		}
	}
	require.NoError(t, db.Close())
}

// What readers of values have read counts as what others read of blob files.
func TestWhatReadersReadIsCounted(t *testing.T) {
	db, err := Open("db", &Options{harness: harness.Harness{FS: vfs.NewMem()}, SeparateFrom: 100})
	require.NoError(t, err)
	value := randomBytes(rand.New(rand.NewPCG(8, 9)), 1<<20)
	require.NoError(t, db.Set([]byte("k"), value, NoSync))
	require.NoError(t, db.Flush(t.Context()))
	db.settle()
	was := db.Metrics().Blobs
	r, err := db.GetReader([]byte("k"))
	require.NoError(t, err)
	_, err = io.ReadFull(r, make([]byte, 10))
	require.NoError(t, err)
	b := db.Metrics().Blobs
	require.EqualValues(t, 1, b.Reads-was.Reads)
	require.Greater(t, b.Read-was.Read, uint64(256<<10))
	require.Less(t, b.Read-was.Read, uint64(257<<10), "a piece")
	_, err = io.Copy(io.Discard, r)
	require.NoError(t, err)
	b = db.Metrics().Blobs
	require.EqualValues(t, 1, b.Reads-was.Reads)
	require.Equal(t, b.LiveBytes, b.Read-was.Read, "all of the record")
	require.NoError(t, r.Close())
	require.NoError(t, db.Close())
}
