package damage

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
)

// openFlipped opens the store with one bit of a file changed, and reports whether
// that was noticed. If not, want must be there.
func openFlipped(t *testing.T, dir, name string, whole []byte, bit int, want storetest.Model) bool {
	t.Helper()
	data := slices.Clone(whole)
	data[bit/8] ^= 1 << (bit % 8)
	require.NoError(t, os.WriteFile(name, data, 0o600))
	db, err := kv.Open(dir, &kv.Options{ReadOnly: true, MemtableSize: 64 << 10})
	if err != nil {
		require.ErrorContains(t, err, name)
		return true
	}
	defer func() { require.NoError(t, db.Close()) }()
	if want != nil {
		storetest.RequireContents(t, want, db)
	}
	return false
}

// A bit of a manifest must never make an older store of it.
func TestEveryBitOfAManifestCounts(t *testing.T) {
	t.Parallel()
	dir, m := stores.Damageable(t)
	name := storetest.OnlyFile(t, dir, manifest.FileManifest)
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	noticed := 0
	for at := range whole {
		bit := 8*at + at%8
		if openFlipped(t, dir, name, whole, bit, m) {
			noticed++
		}
	}
	require.Greater(t, noticed, len(whole)-40, "all but the mark at its end, and spare bytes of its header")
}

// One bit of a log that was synced must never cost what is after it. All but the
// last record is proven to have been synced by what follows it.
func TestEveryBitOfASyncedLogCounts(t *testing.T) {
	t.Parallel()
	dir, _ := stores.Damageable(t)
	name := storetest.OnlyFile(t, dir, manifest.FileWAL)
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 8))
	last := len(whole) - 2000 // the last record has 1100 bytes
	for range scale.Count(100, 300) {
		bit := 8*28 + rng.IntN(8*(last-28))
		if bit/8 < 32 { // spare bytes of the header
			continue
		}
		require.True(t, openFlipped(t, dir, name, whole, bit, nil), "bit %d of byte %d", bit%8, bit/8)
	}
}
