package objects

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/sstable"
)

// Two copies of a bucket go on separately, with the same epochs and the same numbers of files, and have one directory
// for their caches: neither ever reads what the other wrote.
func TestCopiesOfAnObjectStoreShareACache(t *testing.T) {
	first := objstore.NewMem()
	db, before := objectsWith(t, first, 1000)
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	common := storetest.TablesOf(t, first)
	dir := filepath.Join(t.TempDir(), "cache")
	buckets := []objstore.Store{first, storetest.CopyObjects(t, first)}
	want := []storetest.Model{{}, {}}
	with := func(i int, f func(db *kv.DB)) {
		db, err := kv.Open(
			dir,
			&kv.Options{CacheSize: -1, Objects: &objects.Config{Store: buckets[i], CacheSize: 64 << 20}},
		)
		require.NoError(t, err)
		f(db)
		require.NoError(t, db.Close())
	}
	for i := range buckets {
		with(i, func(db *kv.DB) {
			for k := range before {
				v := fmt.Sprintf("%d %0100s", i, k)
				require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
				want[i][k] = v
			}
			require.NoError(t, db.Compact(t.Context(), nil, nil)) // nothing of what they have in common is left
			storetest.RequireContents(t, want[i], db)
		})
	}
	for i := range buckets {
		with(i, func(db *kv.DB) { storetest.RequireContents(t, want[i], db) })
	}
	shared := func(key string) bool { return slices.Contains(common, key) } // not deleted yet
	a := slices.DeleteFunc(storetest.TablesOf(t, buckets[0]), shared)
	b := slices.DeleteFunc(storetest.TablesOf(t, buckets[1]), shared)
	const nonce = len("0123456789abcdef.sst")
	alike := 0
	for _, key := range a {
		if slices.ContainsFunc(b, func(o string) bool { return o[:len(o)-nonce] == key[:len(key)-nonce] }) {
			alike++
		}
		require.NotContains(t, b, key, "one name for two files")
	}
	require.Positive(t, alike, "the copies went on as the other did")
}

// A file that another lies in the place of is damage, though the other is whole: it is not copied.
func TestSwappedObjectsAreNotCopied(t *testing.T) {
	for what, keysOf := range map[string]func(testing.TB, objstore.Store) []string{"blob": storetest.BlobsIn,
		"sst": storetest.TablesOf} {
		from := map[string]int{"blob": 100, "sst": -1}[what] // ids of blob files make tables longer or shorter
		s, rng := objstore.NewMem(), rand.New(rand.NewPCG(5, 5))
		o := kv.Options{SeparateFrom: from, L0CompactionThreshold: 100, Compression: sstable.NoCompression}
		db := openObjects(t, s, &o)
		for i := range 20 {
			require.NoError(t, db.Set(fmt.Appendf(nil, "%03d", i), storetest.RandomBytes(rng, 1000), kv.Async))
			if i%10 == 9 {
				require.NoError(t, db.Flush(t.Context()))
			}
		}
		require.NoError(t, db.Close())
		keys := slices.DeleteFunc(keysOf(t, s), func(key string) bool { return !strings.HasSuffix(key, what) })
		require.Len(t, keys, 2)
		bodies := make([][]byte, 2)
		for i := range keys {
			var err error
			bodies[i], err = objstore.ReadAll(context.Background(), s, keys[i], 1<<20)
			require.NoError(t, err)
		}
		require.Len(t, bodies[0], len(bodies[1]), what)
		for i := range keys {
			b := bodies[1-i]
			require.NoError(t, s.Put(context.Background(), keys[i], bytes.NewReader(b), int64(len(b))))
		}
		db = openObjects(t, s, &o)
		require.ErrorIs(t, db.Checkpoint(t.Context(), filepath.Join(t.TempDir(), "to")), kv.ErrCorruption, what)
		_, err := db.Backup(t.Context(), io.Discard, kv.BackupMark{})
		require.ErrorIs(t, err, kv.ErrCorruption, what)
		require.NoError(t, db.Close())
	}
}
