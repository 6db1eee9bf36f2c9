package objects

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A reader of a value in an object store asks for parts, none of which has more than the value's record; one that
// comes damaged is asked for again.
func TestAReaderOfAnObjectStoreAsksForParts(t *testing.T) {
	t.Parallel()
	s := objstoretest.NewFaults(objstore.NewMem(), 1)
	db := openObjects(t, s, &kv.Options{SeparateFrom: 100, CacheSize: -1, MemtableSize: 64 << 20})
	rng, sizes := rand.New(rand.NewPCG(8, 8)), []int{1000, 100 << 10, 5 << 20, 1000}
	var want []string
	for i, n := range sizes {
		want = append(want, string(storetest.RandomBytes(rng, n)))
		require.NoError(t, db.Set(fmt.Appendf(nil, "%03d", i), []byte(want[i]), kv.Async))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	db = openObjects(t, s, &kv.Options{SeparateFrom: 100, CacheSize: -1})
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
