package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// Benched is a Set or a Cuckoo as the subject of a workload.
type benched[S benchable] struct {
	*Counter
	set S
}

type benchable interface {
	Add(context.Context, []byte) error
	MAdd(context.Context, [][]byte) error
	Contains(context.Context, []byte) (bool, error)
	MContains(context.Context, [][]byte) ([]bool, error)
}

func (s benched[S]) Do(ctx context.Context, op Op, keys [][]byte) (yes int, err error) {
	switch {
	case op == Add && len(keys) == 1:
		return 0, s.set.Add(ctx, keys[0])
	case op == Add:
		return 0, s.set.MAdd(ctx, keys)
	case len(keys) == 1:
		maybe, err := s.set.Contains(ctx, keys[0])
		return countTrue([]bool{maybe}), err
	}
	maybe, err := s.set.MContains(ctx, keys)
	return countTrue(maybe), err
}

func countTrue(all []bool) (n int) {
	for _, b := range all {
		if b {
			n++
		}
	}
	return n
}

// openCounted opens a client whose trips are counted.
func openCounted(t testing.TB, addrs ...string) (*redisfilter.Client, *Counter) {
	c := redistest.Opened(t, redisfilter.Open, redisfilter.ErrUnavailable, &redis.UniversalOptions{Addrs: addrs})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	trips := &Counter{}
	conn.Of(c).RDB.AddHook(trips)
	return c, trips
}

// openBenched makes an empty set of 1 %.
func openBenched(t testing.TB, c *redisfilter.Client, trips *Counter, name string, n int,
	growth float64) benched[*redisfilter.Set] {
	o := &redisfilter.Options{Growth: growth, StartEmpty: true}
	s, err := redisfilter.New(t.Context(), c, name, n, 0.01, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return benched[*redisfilter.Set]{trips, s}
}

// openBenchedCuckoo makes an empty cuckoo set of 1 %.
func openBenchedCuckoo(t testing.TB, c *redisfilter.Client, trips *Counter, name string,
	n int) benched[*redisfilter.Cuckoo] {
	o := &redisfilter.Options{StartEmpty: true}
	k, err := redisfilter.NewCuckoo(t.Context(), c, name, n, 0.01, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return benched[*redisfilter.Cuckoo]{trips, k}
}

// addAll adds keys by the thousand.
func addAll(t testing.TB, s benchable, keys [][]byte) {
	for batch := range slices.Chunk(keys, 1000) {
		require.NoError(t, s.MAdd(t.Context(), batch))
	}
}

// importAll adds keys to a set of one size.
func importAll(t testing.TB, s *redisfilter.Set, keys [][]byte) {
	local, err := s.Local()
	require.NoError(t, err)
	for _, key := range keys {
		local.AddHash(s.Hash(key))
	}
	require.NoError(t, s.Import(t.Context(), local))
}

// plainBits is the Bloom filter that people write by hand: one long string, 14 GETBIT or SETBIT for a key, all
// of a call in one pipeline.
type plainBits struct {
	Counter
	rdb  *redis.Client
	key  string
	bits uint64
}

const plainProbes = 14

func newPlainBits(t testing.TB, addr, key string, bits uint64) *plainBits {
	s := &plainBits{rdb: redis.NewClient(&redis.Options{Addr: addr}), key: key, bits: bits}
	t.Cleanup(func() { require.NoError(t, s.rdb.Close()) })
	s.rdb.AddHook(&s.Counter)
	return s
}

// offsets are those of double hashing (A. Kirsch and M. Mitzenmacher, "Less Hashing, Same Performance", 2006).
func (s *plainBits) offsets(key []byte) (at [plainProbes]int64) {
	h := xxhash.Sum64(key)
	step := h>>32 | 1
	for i := range at {
		at[i] = int64(h % s.bits)
		h += step
	}
	return at
}

func (s *plainBits) fill(t testing.TB, keys [][]byte) {
	data := make([]byte, s.bits/8+1)
	for _, key := range keys {
		for _, at := range s.offsets(key) {
			data[at/8] |= 0x80 >> (at % 8)
		}
	}
	require.NoError(t, s.rdb.Set(t.Context(), s.key, data, 0).Err())
}

func (s *plainBits) Do(ctx context.Context, op Op, keys [][]byte) (yes int, err error) {
	pipe := s.rdb.Pipeline()
	bits := make([]*redis.IntCmd, 0, plainProbes*len(keys))
	for _, key := range keys {
		for _, at := range s.offsets(key) {
			if op == Add {
				bits = append(bits, pipe.SetBit(ctx, s.key, at, 1))
			} else {
				bits = append(bits, pipe.GetBit(ctx, s.key, at))
			}
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	for of := range slices.Chunk(bits, plainProbes) {
		if !slices.ContainsFunc(of, func(b *redis.IntCmd) bool { return b.Val() == 0 }) {
			yes++
		}
	}
	return yes, nil
}

// bareRead is the floor of a lookup: the GETRANGE of 64 bytes that go-redis sends and the caller throws away.
type bareRead struct {
	Counter
	rdb *redis.Client
	key string
}

func newBareRead(t testing.TB, addr, key string) *bareRead {
	s := &bareRead{rdb: redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}), key: key}
	t.Cleanup(func() { require.NoError(t, s.rdb.Close()) })
	s.rdb.AddHook(&s.Counter)
	return s
}

func (s *bareRead) Do(ctx context.Context, op Op, keys [][]byte) (yes int, err error) {
	if op != Contains {
		return 0, errors.ErrUnsupported
	}
	if len(keys) == 1 {
		return 1, s.rdb.GetRange(ctx, s.key, 2000, 2063).Err()
	}
	pipe := s.rdb.Pipeline()
	for range keys {
		pipe.GetRange(ctx, s.key, 2000, 2063)
	}
	_, err = pipe.Exec(ctx)
	return len(keys), err
}

// anyShard is the key of a shard of a set in Redis.
func anyShard(t testing.TB, rdb *redis.Client, name string) string {
	keys, _, err := rdb.Scan(t.Context(), 0, "sk:{"+name+"/*:0", 1_000_000).Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	return keys[0]
}

// memoryOf sums the memory of all values whose keys match.
func memoryOf(t testing.TB, rdb *redis.Client, pattern string) (bytes int64) {
	ctx := context.Background()
	keys := rdb.Scan(ctx, 0, pattern, 10_000).Iterator()
	for keys.Next(ctx) {
		n, err := rdb.MemoryUsage(ctx, keys.Val(), 0).Result()
		require.NoError(t, err, fmt.Sprint("MEMORY USAGE ", keys.Val()))
		bytes += n
	}
	require.NoError(t, keys.Err())
	return bytes
}
