package godatastore_test

import (
	"fmt"
	"testing"

	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
	flatfs "github.com/ipfs/go-ds-flatfs"
	leveldb "github.com/ipfs/go-ds-leveldb"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
)

const blocks = 20_000

// A rival is a datastore to measure. A node gives flatfs keys without the prefix.
type rival struct {
	name, prefix string
	open         func(tb testing.TB) (ds.Batching, error)
}

// BenchmarkDatastores measures this datastore and those of a node of IPFS in turns, with blocks of 4 KiB: flatfs, which
// has the blocks there, and LevelDB, which has all else. None syncs. `-benchtime 5x` makes five rounds.
func BenchmarkDatastores(b *testing.B) {
	var t turns.Table
	rivals := []rival{
		{"siftkv", "/blocks", func(tb testing.TB) (ds.Batching, error) { return open(tb, tb.TempDir(), nil), nil }},
		{"flatfs", "", func(tb testing.TB) (ds.Batching, error) {
			return flatfs.CreateOrOpen(tb.TempDir(), flatfs.IPFS_DEF_SHARD, false)
		}},
		{"leveldb", "/blocks", func(tb testing.TB) (ds.Batching, error) {
			return leveldb.NewDatastore(tb.TempDir(), nil)
		}},
	}
	for round := range b.N {
		for i := range rivals {
			rivals[(round+i)%len(rivals)].measure(b, &t)
		}
	}
	t.Print(b, "siftkv", "flatfs", "leveldb")
}

// measure adds a round of a datastore.
func (r rival) measure(b *testing.B, t *turns.Table) {
	d, err := r.open(b)
	require.NoError(b, err)
	defer d.Close()
	ctx, value := b.Context(), make([]byte, 4096)
	each := func(name string, f func(n int, key ds.Key) error) {
		t.Measure(r.name, name, blocks, func() {
			for n := range blocks {
				key := ds.NewKey(fmt.Sprintf("%s/%016X", r.prefix, uint64(n)*0x9e3779b97f4a7c15))
				require.NoError(b, f(n, key))
			}
		})
	}
	each("put", func(n int, key ds.Key) error { return d.Put(ctx, key, fmt.Appendf(value[:0:4096], "%04096d", n)) })
	require.NoError(b, d.Sync(ctx, ds.NewKey("/")))
	each("get", func(_ int, key ds.Key) error { _, err := d.Get(ctx, key); return err })
	each("getsize", func(_ int, key ds.Key) error { _, err := d.GetSize(ctx, key); return err })
	each("absent", func(_ int, key ds.Key) error { _, err := d.Has(ctx, ds.NewKey(key.String()+"0")); return err })
	t.Measure(r.name, "keys", blocks, func() {
		found, err := d.Query(ctx, query.Query{Prefix: r.prefix, KeysOnly: true})
		require.NoError(b, err)
		entries, err := found.Rest()
		require.NoError(b, err)
		require.Len(b, entries, blocks)
	})
}
