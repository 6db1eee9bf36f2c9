package bench

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// A Counter is a hook of a go-redis client that counts trips: single commands and pipelines.
type Counter struct{ trips atomic.Int64 }

// Trips is how many there were.
func (c *Counter) Trips() int64 { return c.trips.Load() }

// DialHook does nothing.
func (c *Counter) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook counts commands that are sent alone.
func (c *Counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.trips.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts pipelines.
func (c *Counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.trips.Add(1)
		return next(ctx, cmds)
	}
}
