package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/redisfilter"

	"github.com/siftkv/siftkv/examples/guard/internal/cache"
	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

// newGuard returns the service on a store, with nothing in front of that.
func newGuard(db *kv.DB) *guard.Guard {
	client := redis.NewClient(&redis.Options{})
	client.AddHook(forgetful{})
	return guard.New(guard.Parts{
		Store: rows{db},
		Cache: cache.New(client, cache.Config{TTL: time.Minute, NullTTL: time.Minute, Timeout: time.Minute}),
		Filters: guard.Filters{
			Users: maybe{}, Names: maybe{}, Banned: maybe{},
			Feed: func(string) guard.Seen { return maybe{} },
		},
		Counters: stats.New(),
		Logger:   slog.New(slog.DiscardHandler),
	}, guard.Config{Conns: 1, Queue: 1, Timeout: time.Minute, FilterTimeout: time.Minute})
}

// forgetful is a Redis that takes everything and keeps nothing. Nobody connects to one.
type forgetful struct{}

func (forgetful) DialHook(next redis.DialHook) redis.DialHook { return next }

func (forgetful) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, c redis.Cmder) error {
		if c.Name() != "get" {
			return nil
		}
		c.SetErr(redis.Nil)
		return redis.Nil
	}
}

func (forgetful) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// maybe is a filter that cannot tell.
type maybe struct{}

func (maybe) Ready(context.Context) error                    { return nil }
func (maybe) Add(context.Context, []byte) error              { return nil }
func (maybe) Contains(context.Context, []byte) (bool, error) { return true, nil }
func (maybe) Remove(context.Context, []byte) (bool, error)   { return true, nil }
func (maybe) Metrics() redisfilter.Metrics                   { return redisfilter.Metrics{Loaded: true} }
func (maybe) MContains(_ context.Context, keys [][]byte) ([]bool, error) {
	return make([]bool, len(keys)), nil
}

func (maybe) MAddNew(_ context.Context, keys [][]byte) ([]bool, error) {
	added := make([]bool, len(keys))
	for i := range added {
		added[i] = true
	}
	return added, nil
}
