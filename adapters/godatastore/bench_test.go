package godatastore_test

import (
	"fmt"
	"testing"

	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
	leveldb "github.com/ipfs/go-ds-leveldb"
	"github.com/stretchr/testify/require"
)

const blocks = 20_000

// BenchmarkDatastores measures this datastore beside IPFS's LevelDB, with blocks of 4 KiB.
func BenchmarkDatastores(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(b *testing.B) ds.Batching
	}{
		{"siftkv", func(b *testing.B) ds.Batching { return open(b, b.TempDir(), nil) }},
		{"leveldb", func(b *testing.B) ds.Batching {
			d, err := leveldb.NewDatastore(b.TempDir(), nil)
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, d.Close()) })
			return d
		}},
	} {
		ctx := b.Context()
		value := make([]byte, 4096)
		run := func(op string, d ds.Batching, f func(n int) error) {
			b.Run(fmt.Sprintf("op=%s/store=%s", op, c.name), func(b *testing.B) {
				for n := 0; b.Loop(); n++ {
					if err := f(n % blocks); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		empty := c.open(b)
		run("put", empty, func(n int) error { return empty.Put(ctx, block(n), value) })
		d := c.open(b)
		for n := range blocks {
			require.NoError(b, d.Put(ctx, block(n), fmt.Appendf(value[:0:4096], "%04096d", n)))
		}
		require.NoError(b, d.Sync(ctx, ds.NewKey("/")))
		run("get", d, func(n int) error { _, err := d.Get(ctx, block(n)); return err })
		run("getsize", d, func(n int) error { _, err := d.GetSize(ctx, block(n)); return err })
		run("absent", d, func(n int) error { _, err := d.Has(ctx, block(-n-1)); return err })
		run("keys", d, func(int) error {
			r, err := d.Query(ctx, query.Query{Prefix: "/blocks", KeysOnly: true})
			if err != nil {
				return err
			}
			entries, err := r.Rest()
			if len(entries) != blocks {
				return fmt.Errorf("%d entries: %w", len(entries), err)
			}
			return err
		})
	}
}

func block(n int) ds.Key {
	return ds.NewKey(fmt.Sprintf("/blocks/%016x", uint64(n)*0x9e3779b97f4a7c15))
}
