package fuse_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/fuse"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
)

// unmixed is the inverse of hash64.Mix.
func unmixed(z uint64) uint64 {
	inverse := uint64(1)
	const multiplier = 0xd6e8feb86659fd93
	for range 6 { // Newton's method: each round doubles the bits that are right
		inverse *= 2 - multiplier*inverse
	}
	z ^= z >> 32
	z *= inverse
	z ^= z>>29 ^ z>>58
	z *= inverse
	return z ^ z>>32
}

// collision returns the mixed hashes of two keys that have all places in common: no array has both fingerprints.
func collision(l peel.Layout, rng *rand.Rand) []uint64 {
	_, arity := l.Size()
	var places [1024]peel.Places
	zs := make([]uint64, len(places))
	zs[0] = rng.Uint64()
	for {
		for i := range zs[1:] {
			zs[i+1] = zs[0]>>40<<40 | rng.Uint64()>>24
		}
		l.Locate(zs, places[:])
		for i := range zs[1:] {
			if [4]uint32(places[i+1]) == [4]uint32(places[0]) && zs[i+1] != zs[0] && arity == 3 {
				return []uint64{zs[0], zs[i+1]}
			}
		}
	}
}

// Two keys for each seed that is known beforehand do not take the filter away from all others: 64 of them, each pair
// without a solution under one of the first 32 numbers.
func TestKeysThatAreMadeToFailDoNoHarm(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	const honest, attempts, perSize = 5000, 32, 8
	policy, err := fuse.Parse("8")
	require.NoError(t, err)
	var chosen []uint64
	for seed := range uint64(attempts) {
		l := fuse.Layout(3, honest+2*attempts, int(seed/perSize))
		for _, z := range collision(l, rng) {
			h := unmixed(z) ^ seed*hash64.Golden
			require.Equal(t, z, hash64.Seeded(h, uint32(seed)))
			chosen = append(chosen, h)
		}
	}
	b := policy.NewBuilder()
	for range honest {
		b.AddHash(rng.Uint64())
	}
	for _, h := range chosen {
		b.AddHash(h)
	}
	data, ok := b.Finish(nil)
	require.True(t, ok, "chosen keys took the filter")
	f, err := fuse.Decode(data)
	require.NoError(t, err)
	for _, h := range chosen {
		require.True(t, f.MayContainHash(h))
	}
	passed := 0
	for range 10_000 {
		if f.MayContainHash(rng.Uint64()) {
			passed++
		}
	}
	require.Less(t, passed, 100)
}
