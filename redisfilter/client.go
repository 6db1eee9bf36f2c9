package redisfilter

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// A Client is a program's connections to the Redis that holds its sets: a server, a master with its Sentinels, or a
// cluster. One serves all sets of a program, those of package owners among them, and any number of goroutines. Sets of
// a closed client answer "maybe" and ErrClosed: close them first.
//
// It is an alias, so that package owners sees the connections. Its method for programs is Close() error, which closes
// them.
type Client = conn.Client

// Open connects, and fails if no master answers. The options are go-redis'; see there for their defaults. Open sets
// some of them: deadlines of contexts are kept, nothing is read from replicas, and no connections are made ahead.
//
// A client has connections of its own because its answers depend on them: every new connection tells whether the
// server behind it is still the one that was trusted, before it answers anything.
func Open(ctx context.Context, o *redis.UniversalOptions) (*Client, error) { return conn.Open(ctx, o) }
