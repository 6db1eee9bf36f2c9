package objects

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/remote"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// With Objects.WriteThrough, what was just flushed is read from the cache on the local disk.
func TestWhatIsWrittenThroughIsReadFromTheCache(t *testing.T) {
	t.Parallel()
	for _, through := range []bool{false, true} {
		s := storetest.NewCountedStore()
		db, err := kv.Open("cache", stores.With(harness.Harness{FS: vfs.NewMem()}, &kv.Options{SeparateFrom: -1,
			Objects: &objects.Config{Store: s, CacheSize: 16 << 20, WriteThrough: through}}))
		require.NoError(t, err)
		key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
		for i := range 1000 {
			require.NoError(t, db.Set(key(i), fmt.Appendf(nil, "%0100d", i), kv.NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
		harness.ObjectDir(db).(*remote.FS).FlushCache()
		gets := s.Requests(func() {
			for i := range 1000 {
				_, err := db.Get(key(i))
				require.NoError(t, err)
			}
		})[objstore.Get]
		require.Equal(t, through, gets == 0, "%d requests", gets)
		require.NoError(t, db.Close())
	}
}
