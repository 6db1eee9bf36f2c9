package bench

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// BenchmarkBulk is what it takes to bring ten million keys into a set of one size. Load is measured from the moment
// that it asks its source, whose keys cost nothing, until the set is in use. Import is of a local set, without and
// with the time to fill that. An op is a key. Load's waits for other processes, which come before and do not depend
// on the keys, are in wait-s.
func BenchmarkBulk(b *testing.B) {
	const n = 10_000_000
	server := redistest.Start(b)
	c, err := redisfilter.Open(b.Context(), &redis.UniversalOptions{Addrs: []string{server.Addr}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, c.Close()) })
	keys := Keys(0, n)

	benchLoad(b, server, c, keys)
	benchImport(b, server, c, keys)
}

func benchLoad(b *testing.B, server *redistest.Server, c *redisfilter.Client, keys [][]byte) {
	set, err := redisfilter.New(b.Context(), c, "loaded", len(keys), 0.01, nil)
	require.NoError(b, err)
	defer set.Close()
	var asked time.Time
	source := func(_ context.Context, _ time.Time, add func(...[]byte) error) error {
		asked = time.Now()
		return add(keys...)
	}
	began, used := time.Now(), server.CPU(b.Context())
	require.NoError(b, set.Load(b.Context(), source))
	took, used := time.Since(asked), server.CPU(b.Context())-used
	requireSome(b, set, keys)
	require.NoError(b, set.Drop(b.Context()))
	reportBulk(b, "load", len(keys), took, used, figure{asked.Sub(began).Seconds(), "wait-s"})
}

func benchImport(b *testing.B, server *redistest.Server, c *redisfilter.Client, keys [][]byte) {
	set, err := redisfilter.New(b.Context(), c, "imported", len(keys), 0.01, &redisfilter.Options{StartEmpty: true})
	require.NoError(b, err)
	defer set.Close()
	began := time.Now()
	local, err := set.Local()
	require.NoError(b, err)
	for _, key := range keys {
		local.AddHash(set.Hash(key))
	}
	filled, used := time.Now(), server.CPU(b.Context())
	require.NoError(b, set.Import(b.Context(), local))
	took, used := time.Since(filled), server.CPU(b.Context())-used
	requireSome(b, set, keys)
	reportBulk(b, "import", len(keys), took, used, figure{filled.Sub(began).Seconds(), "fill-s"})
}

// reportBulk reports what n keys took.
func reportBulk(b *testing.B, name string, n int, elapsed, server time.Duration, more figure) {
	keys := float64(n)
	report(b, name, n, figure{float64(elapsed) / keys, "ns/op"}, figure{keys / elapsed.Seconds() / 1e6, "Mkeys/s"},
		figure{float64(server) / float64(time.Microsecond) / keys, "server-us/op"}, more)
}

// requireSome asks for some of the keys, and for some that are not there.
func requireSome(b *testing.B, s *redisfilter.Set, keys [][]byte) {
	maybe, err := s.MContains(b.Context(), keys[len(keys)-1000:])
	require.NoError(b, err)
	require.Equal(b, 1000, countTrue(maybe))
	maybe, err = s.MContains(b.Context(), Keys(1<<31, 1000))
	require.NoError(b, err)
	require.Less(b, countTrue(maybe), 100)
}
