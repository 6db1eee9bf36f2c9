package inprocess_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

func start(t testing.TB) (*inprocess.Server, *redis.Client) {
	s, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(s.Close)
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return s, c
}

func TestBitfieldIsAtomic(t *testing.T) {
	_, c := start(t)
	const workers, rounds = 8, 200
	script := redis.NewScript(`return redis.call('BITFIELD', KEYS[1], 'SET', 'u1', ARGV[1], 1)`)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for round := range rounds {
				bit := round*workers + w // of one byte with those of the others
				switch w % 3 {
				case 0:
					_ = c.BitField(ctx, "k", "SET", "u1", bit, 1).Err()
				case 1:
					_ = script.Run(ctx, c, []string{"k"}, bit).Err()
				case 2:
					_ = c.SetBit(ctx, "k", int64(bit), 1).Err()
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, workers*rounds, c.BitCount(ctx, "k", nil).Val())
}

func TestThereIsOneDatabase(t *testing.T) {
	_, c := start(t)
	conn := c.Conn()
	defer conn.Close()
	require.NoError(t, conn.Select(ctx, 0).Err())
	require.Error(t, conn.Select(ctx, 1).Err())
	require.NoError(t, conn.Do(ctx, "MULTI").Err())
	require.ErrorContains(t, conn.BitField(ctx, "k", "SET", "u1", 0, 1).Err(), "transactions")
}

func TestAWatchedKeyThatBitfieldChangesAbortsATransaction(t *testing.T) {
	_, c := start(t)
	err := c.Watch(ctx, func(tx *redis.Tx) error {
		require.NoError(t, c.BitField(ctx, "k", "SET", "u1", "0", "1").Err())
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			return pipe.Set(ctx, "other", "v", 0).Err()
		})
		return err
	}, "k")
	require.ErrorIs(t, err, redis.TxFailedErr)
	require.Zero(t, c.Exists(ctx, "other").Val())
}

func TestKeysExpire(t *testing.T) {
	_, c := start(t)
	at := time.Now().Add(30 * time.Millisecond)
	require.Equal(t, "OK", c.Do(ctx, "SET", "at", "v", "NX", "PXAT", at.UnixMilli()).Val())
	require.NoError(t, c.SetNX(ctx, "after", "v", 30*time.Millisecond).Err())
	require.NoError(t, c.SetNX(ctx, "later", "v", time.Hour).Err())
	gone := func() bool { return c.Exists(ctx, "at", "after").Val() == 0 }
	redistest.Await(t, "end of both keys", gone)
	require.Equal(t, int64(1), c.Exists(ctx, "later").Val())
}

func TestInfoNamesTheServer(t *testing.T) {
	s, c := start(t)
	_, other := start(t)
	info := c.InfoMap(ctx, "server", "replication").Val()
	require.Len(t, info["Server"]["run_id"], 40)
	require.Len(t, info["Replication"]["master_replid"], 40)
	require.Equal(t, "master", info["Replication"]["role"])
	require.NotEqual(t, info["Server"]["run_id"], other.InfoMap(ctx, "server").Val()["Server"]["run_id"])
	s.Close()
	s.Close()
	require.Error(t, c.Ping(ctx).Err())
}

func BenchmarkBitfield(b *testing.B) {
	_, c := start(b)
	require.NoError(b, c.SetRange(ctx, "k", 4047, "\x00").Err())
	const batch = 1000
	for i := 0; b.Loop(); i++ {
		pipe := c.Pipeline()
		for range batch {
			at := i % 32_000
			pipe.BitField(ctx, "k", "SET", "u1", at, 1, "SET", "u1", at+77, 1, "GET", "u1", 511)
		}
		_, err := pipe.Exec(ctx)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*batch), "µs/command")
}

func TestCloseEndsWhatRuns(t *testing.T) {
	s, c := start(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if c.Eval(ctx, "return redis.call('BITFIELD', 'k', 'SET', 'u8', 0, 1)", nil).Err() != nil ||
					c.BitField(ctx, "k", "SET", "u8", "0", 1).Err() != nil {
					return
				}
			}
		})
	}
	redistest.Await(t, "first write", func() bool { return c.Exists(ctx, "k").Val() == 1 })
	s.Close()
	wg.Wait()
	require.Error(t, c.Ping(ctx).Err())
}
