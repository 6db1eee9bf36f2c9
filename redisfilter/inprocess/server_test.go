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
	script := redis.NewScript(`return redis.call('BITFIELD', KEYS[1], 'INCRBY', 'u32', '#0', 1)`)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range rounds {
				switch w % 4 {
				case 0:
					_ = c.BitField(ctx, "k", "INCRBY", "u32", "#0", 1).Err()
				case 1:
					_ = script.Run(ctx, c, []string{"k"}).Err()
				case 2:
					pipe := c.TxPipeline()
					pipe.BitField(ctx, "k", "INCRBY", "u32", "#0", 1)
					_, _ = pipe.Exec(ctx)
				case 3: // writes what lies beside
					_ = c.SetRange(ctx, "k", 4, "beside").Err()
				}
			}
		})
	}
	wg.Wait()
	got, err := c.BitField(ctx, "k", "GET", "u32", "#0").Result()
	require.NoError(t, err)
	require.Equal(t, []int64{workers * 3 / 4 * rounds}, got)
}

func TestBitfieldUsesTheConnectionsDatabase(t *testing.T) {
	_, c := start(t)
	conn := c.Conn()
	defer conn.Close()
	for _, db := range []int{0, 1, 0} {
		require.NoError(t, conn.Select(ctx, db).Err())
		require.NoError(t, conn.BitField(ctx, "k", "INCRBY", "u8", "0", "1").Err())
	}
	require.Equal(t, "\x02", c.Get(ctx, "k").Val())
	require.NoError(t, conn.Do(ctx, "MULTI").Err())
	require.NoError(t, conn.Do(ctx, "SELECT", "1").Err())
	require.NoError(t, conn.Do(ctx, "BITFIELD", "k", "INCRBY", "u8", "0", "1").Err())
	require.NoError(t, conn.Do(ctx, "EXEC").Err())
	require.NoError(t, conn.Do(ctx, "BITFIELD", "k", "INCRBY", "u8", "0", "1").Err())
	require.Equal(t, "\x03", conn.Get(ctx, "k").Val())
	require.Equal(t, "\x02", c.Get(ctx, "k").Val())
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
	pipe := c.TxPipeline()
	text := pipe.Info(ctx, "replication")
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	require.Contains(t, text.Val(), info["Replication"]["master_replid"])
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

func TestConnectionsThatSelectAtOnceKeepTheirDatabases(t *testing.T) {
	s, _ := start(t)
	clients := make([]*redis.Client, 8)
	var wg sync.WaitGroup
	for db := range clients {
		clients[db] = redis.NewClient(&redis.Options{Addr: s.Addr(), DB: db})
		t.Cleanup(func() { clients[db].Close() })
		wg.Go(func() { _ = clients[db].BitField(ctx, "k", "SET", "u8", "0", db).Err() })
	}
	wg.Wait()
	for db, c := range clients {
		require.Equal(t, string([]byte{byte(db)}), c.Get(ctx, "k").Val())
	}
}

func TestCloseEndsWhatRuns(t *testing.T) {
	s, c := start(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if c.Eval(ctx, "return redis.call('BITFIELD', 'k', 'INCRBY', 'u8', 0, 1)", nil).Err() != nil ||
					c.BitField(ctx, "k", "INCRBY", "u8", "0", 1).Err() != nil {
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
