package cuckootable

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// BenchmarkServer measures the server's CPU time per key of what clients do to a shard that is
// filled to a share of its slots, pipelined by 100: server-µs/key.
func BenchmarkServer(b *testing.B) {
	redistest.RequireReal(b)
	server := redistest.Start(b)
	s, err := NewShape(4500, 0.001, DefaultSize, 0)
	require.NoError(b, err)
	for _, load := range []float64{0.5, 0.93} {
		b.Run(fmt.Sprintf("load=%.2f", load), func(b *testing.B) {
			benchmarkLookups(b, server, s, load)
			for _, perCall := range []int{1, 64} {
				benchmarkChanges(b, server, s, load, perCall)
			}
		})
	}
}

func filled(b *testing.B, server *redistest.Server, s Shape, load float64) *stored {
	table := s.NewTable()
	for h := range uint64(load * float64(s.Slots())) {
		require.NoError(b, table.Add(s.Place(h)))
	}
	shard := store(b.Context(), b, server.Client(), s)
	require.NoError(b, shard.client.Set(b.Context(), shard.key, table.Bytes(), 0).Err())
	return shard
}

// measure runs b.N keys in pipelines of 100 commands and reports the server's time for each.
func measure(b *testing.B, server *redistest.Server, perCall int,
	queue func(ctx context.Context, pipe redis.Pipeliner, n int)) {
	before, done := server.CPU(b.Context()), 0
	for done < b.N {
		pipe := server.Client().Pipeline()
		for range 100 {
			queue(b.Context(), pipe, done)
			done += perCall
		}
		_, err := pipe.Exec(b.Context())
		require.NoError(b, err)
	}
	b.ReportMetric(float64((server.CPU(b.Context())-before).Nanoseconds())/1e3/float64(done), "server-µs/key")
	b.ReportMetric(0, "ns/op")
}

func benchmarkLookups(b *testing.B, server *redistest.Server, s Shape, load float64) {
	shard := filled(b, server, s, load)
	b.Run("lookup", func(b *testing.B) {
		measure(b, server, 1, func(ctx context.Context, pipe redis.Pipeliner, n int) {
			_ = pipe.Process(ctx, redis.NewIntSliceCmd(ctx, s.Lookup(shard.key, s.Place(uint64(n)))...))
		})
	})
}

func benchmarkChanges(b *testing.B, server *redistest.Server, s Shape, load float64, perCall int) {
	shard := filled(b, server, s, load)
	for _, op := range []conn.Script{Add, AddNew, Remove} {
		_, err := run(b.Context(), server.Client(), shard.call(op, s.Place(1)))
		require.NoError(b, err)
	}
	queue := func(pipe redis.Pipeliner, op conn.Script, n int) {
		places := make([]Place, perCall)
		for at := range places {
			places[at] = s.Place(1<<40 + uint64(n+at))
		}
		_ = pipe.Process(context.Background(), op.Short(context.Background(), shard.call(op, places...).Call))
	}
	b.Run(fmt.Sprintf("add+remove/keys=%d", perCall), func(b *testing.B) {
		measure(b, server, 2*perCall, func(_ context.Context, pipe redis.Pipeliner, n int) {
			queue(pipe, Add, n)
			queue(pipe, Remove, n)
		})
	})
	b.Run(fmt.Sprintf("addnew of known/keys=%d", perCall), func(b *testing.B) {
		known := s.Place(1)
		measure(b, server, perCall, func(ctx context.Context, pipe redis.Pipeliner, _ int) {
			places := make([]Place, perCall)
			for at := range places {
				places[at] = known
			}
			_ = pipe.Process(ctx, AddNew.Short(ctx, shard.call(AddNew, places...).Call))
		})
	})
}
