package kv

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// damageStore makes a store with one table in the last level and a log, both of
// 200 synced keys, and returns what it holds.
func damageStore(t *testing.T) (dir string, m storetest.Model) {
	t.Helper()
	dir, m = t.TempDir(), storetest.Model{}
	db := openDir(t, dir, &Options{Compression: sstable.NoCompression, BlockSize: 512})
	rng := rand.New(rand.NewPCG(4, 4))
	write := func(prefix string) {
		b := db.NewBatch()
		for i := range 200 {
			k, v := fmt.Sprintf("%s%03d", prefix, i), string(randomBytes(rng, 100))
			m[k] = v
			if require.NoError(t, b.Set([]byte(k), []byte(v))); i%10 == 9 {
				require.NoError(t, b.Commit(Sync))
				b.Reset()
			}
		}
	}
	write("table/")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	write("log/")
	db.abandonLikeACrash(t)
	return dir, m
}

// abandonLikeACrash lets go of a store's directory without closing the store in
// good order: what a killed process would leave.
func (d *DB) abandonLikeACrash(t *testing.T) {
	t.Helper()
	d.settle()
	require.NoError(t, d.abandon())
}

// requireDamage checks that an error matches ErrCorruption and names the file, the
// offset (if it is known) and the command to run.
func requireDamage(t *testing.T, err error, name string, offset int64) {
	t.Helper()
	require.ErrorIs(t, err, ErrCorruption)
	var damage *CorruptionError
	require.ErrorAs(t, err, &damage)
	require.Equal(t, name, damage.File)
	require.ErrorContains(t, err, name)
	if offset >= 0 {
		require.Equal(t, offset, damage.Offset, err.Error())
		require.ErrorContains(t, err, fmt.Sprintf("offset %d", offset))
	}
	require.ErrorContains(t, err, "verify "+filepath.Dir(name))
}

// craftedKey is the key of write n of a log.
func craftedKey(log, n int) string { return fmt.Sprintf("%d/%02d", log, n) }
