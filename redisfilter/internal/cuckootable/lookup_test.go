package cuckootable

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// Lookups in Redis say what the table in memory says, for every length of a fingerprint.
func TestLookupAgreesWithTheTable(t *testing.T) {
	onServers(t, func(t *testing.T, client *redis.Client) {
		for bits := uint32(minBits); bits <= maxBits; bits++ {
			shard := store(t.Context(), t, client, Shape{Bits: bits, Buckets: 14, Shards: 1})
			table := shard.NewTable()
			for h := range uint64(200) {
				_ = table.Add(shard.Place(h % 30)) // some do not fit
			}
			require.NoError(t, client.Set(t.Context(), shard.key, table.Bytes(), 0).Err())
			for h := range uint64(100) {
				p := shard.Place(h)
				n, err := shard.copies(t.Context(), p)
				require.NoError(t, err)
				require.Equal(t, table.Copies(p), n, "%d bits", bits)
			}
		}
	})
}

// hostile returns commands that leave in a shard's key what is none, by accident or malice.
func hostile(s Shape, key string) map[string][]any {
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, s.Size())
	_, _ = random.Read(noise)
	longer, wider := s, s
	longer.Bits++
	wider.Buckets += 2
	return map[string][]any{
		"missing":       {"DEL", key},
		"empty":         {"SET", key, ""},
		"short":         {"SET", key, s.Blank()[:s.Size()-1]},
		"cut":           {"SET", key, s.Blank()[:s.Size()/2]},
		"a header":      {"SET", key, s.Blank()[:headerSize]},
		"zeros":         {"SET", key, make([]byte, s.Size())},
		"noise":         {"SET", key, noise},
		"text":          {"SET", key, "sift"},
		"a number":      {"SET", key, 12345},
		"longer prints": {"SET", key, longer.Blank()},
		"more buckets":  {"SET", key, wider.Blank()},
		"stray bits":    {"SETBIT", key, 5000, 1},
		"stray bytes":   {"SETRANGE", key, s.Size(), "sift"},
		"a list":        {"RPUSH", key, "sift"},
		"a hash":        {"HSET", key, "sift", 1},
		"a set":         {"SADD", key, "sift"},
		"a sorted set":  {"ZADD", key, 1, "sift"},
	}
}

// Whatever is in a shard's place, nothing says "no" for it, and no script writes to it.
func TestLostShardsAreNeitherAnsweredForNorWritten(t *testing.T) {
	onServers(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		for _, s := range []Shape{{9, 40, 1}, {32, 100, 1}} {
			for name, command := range hostile(s, "sk:{lost}:0") {
				shard := &stored{s, client, "sk:{lost}:0"}
				require.NoError(t, client.Del(ctx, shard.key).Err())
				require.NoError(t, client.Do(ctx, command...).Err())
				before := client.Dump(ctx, shard.key).Val()
				_, err := shard.copies(ctx, s.Place(1))
				requireLost(t, err, name)
				probe := redis.NewIntSliceCmd(ctx, s.Probe(shard.key)...)
				if err = client.Process(ctx, probe); err == nil {
					err = s.Whole(probe.Val(), 0)
				}
				requireLost(t, err, name)
				for _, op := range []conn.Script{Add, AddNew, Remove} {
					call := shard.call(op, s.Place(1), s.Place(2), s.Place(3), s.Place(4))
					_, err := run(ctx, client, call)
					requireLost(t, err, name)
					require.Zero(t, client.Exists(ctx, call.Keys[1]).Val(), "nothing was done, nothing is remembered")
				}
				require.Equal(t, before, client.Dump(ctx, shard.key).Val(), name)
			}
		}
	})
}

// requireLost requires ErrLost, or the server's complaint of a value of another type.
func requireLost(t *testing.T, err error, name string) {
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		require.ErrorIs(t, err, ErrLost, name)
	}
}

// A shard that other bytes got into is no shard of ours any more, but scripts end and stay within it.
func TestScriptsStandNoise(t *testing.T) {
	onServers(t, func(t *testing.T, client *redis.Client) {
		random := rand.New(rand.NewPCG(5, 6))
		for _, bits := range []uint32{8, 13, 32} {
			s := Shape{Bits: bits, Buckets: 40, Shards: 1}
			shard, noise := store(t.Context(), t, client, s), s.Blank()
			for at := headerSize; at < s.markAt(); at++ {
				noise[at] = byte(random.Uint32())
			}
			require.NoError(t, client.Set(t.Context(), shard.key, noise, 0).Err())
			table, err := s.Open(noise, 0)
			require.NoError(t, err)
			for h := range uint64(300) {
				p := s.Place(h)
				want := Changed
				if h%3 == 0 {
					if !table.Remove(p) {
						want = Unchanged
					}
					require.Equal(t, []Answer{want}, shard.change(t.Context(), t, Remove, p))
					continue
				}
				if err := table.Add(p); err != nil {
					want = Full
				}
				require.Equal(t, []Answer{want}, shard.change(t.Context(), t, Add, p))
			}
			require.Equal(t, table.Bytes(), shard.bytes(t.Context(), t))
		}
	})
}

// FuzzCopies decodes replies of any numbers.
func FuzzCopies(f *testing.F) {
	s := Shape{Bits: 12, Buckets: 100, Shards: 1}
	mark := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(s.mark()))
	f.Add(uint8(4), mark)
	f.Add(uint8(4), append(mark, make([]byte, 16)...))
	f.Add(uint8(24), append(mark, make([]byte, 32)...))
	f.Fuzz(func(t *testing.T, bits uint8, data []byte) {
		s := Shape{Bits: minBits + uint32(bits)%(maxBits-minBits+1), Buckets: 100, Shards: 1}
		if bits%2 == 0 {
			copy(data, s.mark())
		}
		var reply []int64
		for ; len(data) >= 8; data = data[8:] {
			reply = append(reply, int64(binary.BigEndian.Uint64(data)))
		}
		p := s.Place(uint64(bits))
		n, err := s.Copies(reply, p)
		whole := len(reply) == 1+2*s.wordsPerBucket() && uint64(reply[0]) == binary.BigEndian.Uint64(s.mark())
		if !whole {
			require.ErrorIs(t, err, ErrLost)
			return
		}
		require.NoError(t, err)
		require.LessOrEqual(t, n, copies)
		empty := make([]int64, len(reply))
		empty[0] = reply[0]
		n, err = s.Copies(empty, p)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}
