package remote

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/diskcache"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

const testPage = 4 << 10

// openCache opens a cache of 1 MiB that reads pages of testPage.
func openCache(t *testing.T, fsys vfs.FS) *diskcache.Cache {
	t.Helper()
	c := diskcache.Open(fsys, "cache", diskcache.Options{Capacity: 1 << 20, PageSize: testPage})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	c.Flush()
	return c
}

// A flippingStore damages what is read while flip is set.
type flippingStore struct {
	objstore.Store
	flip bool
}

func (s *flippingStore) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	n, err := s.Store.GetRange(ctx, key, off, p)
	for i := 100; s.flip && i < n; i += 1000 {
		p[i] ^= 1
	}
	return n, err
}

// A rereadFile counts calls of ReadAgain.
type rereadFile struct {
	vfs.ReadFile
	rereads int
}

func (f *rereadFile) ReadAgain(p []byte, off int64) (int, error) {
	f.rereads++
	return f.ReadFile.(vfs.Rereader).ReadAgain(p, off)
}

// A reply that was damaged on its way does not stay in the cache: nobody would ever get past it.
func TestADamagedReplyIsNotKept(t *testing.T) {
	for _, written := range []bool{false, true} {
		c := openCache(t, vfs.NewMem())
		r := newRig(t, TableOptions{Cache: c, KeepBytes: -1})
		store := &flippingStore{Store: r.store}
		info := r.writeTable(t, "table", 2000, &sstable.WriterOptions{ID: 3})
		counts := new(objstore.Counters)
		noisy := NewTables(objstore.WithCounters(store, counts), TableOptions{Cache: c, KeepBytes: -1})
		file := &rereadFile{ReadFile: noisy.Open("table", info.Size)}
		reader, err := sstable.NewReader(file, info.Size,
			&sstable.ReaderOptions{TailSize: info.TailSize, CacheSize: -1})
		require.NoError(t, err)
		find := func() {
			k := tableKey(700)
			_, _, ok, err := reader.Find(nil, k, filterpolicy.Hash(k), base.MaxSeqNum, new(sstable.Probe))
			require.NoError(t, err)
			require.True(t, ok)
		}
		store.flip = true
		p := make([]byte, 10)
		for off := int64(0); off < int64(info.DataBytes); off += testPage {
			_, err := noisy.Open("table", info.Size).ReadAt(p, off)
			require.NoError(t, err)
		}
		store.flip = false
		if written {
			c.Flush()
		}
		before := counts.Snapshot()
		find()
		require.Equal(t, 1, file.rereads)
		find()
		c.Flush()
		find()
		require.Equal(t, 1, file.rereads)
		require.EqualValues(t, 2, counts.Snapshot().Minus(before)[objstore.Get].Requests)
		require.NoError(t, reader.Close())
		require.NoError(t, noisy.Close())
	}
}
