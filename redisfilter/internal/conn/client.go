// Package conn is a program's connections to Redis: how commands and scripts are sent, which errors tell why one
// failed, and the watch of the servers that may be believed.
package conn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// A Client is what a program has of its connections. Package redisfilter describes it.
type Client struct{ conn Conn }

// Of returns what packages of this module see of a client.
func Of(c *Client) *Conn { return &c.conn }

// Close closes the connections. Sets of the client answer "maybe" and ErrClosed from then on; close them first.
func (c *Client) Close() error {
	c.conn.Watch.Stop()
	return c.conn.RDB.Close()
}

// A Conn is the connections of a client.
type Conn struct {
	RDB     redis.UniversalClient
	Watch   *nodes.Watch
	Cluster bool // else one server has all slots
	follows bool // commands go to another server by themselves when theirs ceases to be the master
}

// Open connects, and fails if no master answers. It keeps the deadlines of contexts, reads nothing from replicas, and
// makes no connection ahead.
func Open(ctx context.Context, o *redis.UniversalOptions) (*Client, error) {
	if o == nil {
		return nil, errors.New("redisfilter: Open needs the addresses of Redis")
	}
	if o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
		return nil, errors.New("redisfilter: sets must be read from masters: a replica lacks keys that were just added")
	}
	watch := nodes.New()
	opts, connected := *o, o.OnConnect
	opts.ContextTimeoutEnabled = true
	opts.DialerRetries = 1 // the next operation tries again
	opts.MaxRetries = -1   // a retry could hide a failover, and that AddNew was executed twice; see Once
	opts.MinIdleConns = 0  // they would be made before connections are noted
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opts.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		if err := watch.OnConnect(ctx, c); err != nil || connected == nil {
			return err
		}
		return connected(ctx, c)
	}
	c := &Client{Conn{RDB: redis.NewUniversalClient(&opts), Watch: watch}}
	_, c.conn.Cluster = c.conn.RDB.(*redis.ClusterClient)
	c.conn.follows = c.conn.Cluster || o.MasterName != "" || o.Dialer != nil
	watch.Attend(c.conn.RDB)
	if one, ok := c.conn.RDB.(*redis.Client); ok {
		noted := &connections{}
		noted.note(one)
		watch.OnMove(noted.closeAll)
	}
	err := watch.Start(ctx, c.conn.RDB)
	if err == nil && !c.conn.follows && watch.Map().Replica() {
		watch.Stop()
		err = nodes.ErrReplica
	}
	if err != nil {
		_ = c.conn.RDB.Close()
		return nil, fmt.Errorf("redisfilter: open %v: %w", o.Addrs, c.conn.Unavailable(err))
	}
	return c, nil
}

// DefaultTimeout bounds calls whose context has no deadline. It is a variable for tests, whose machine may be slower
// than any network.
var DefaultTimeout = 250 * time.Millisecond

// FirstLook returns after which time a process looks at the shards of a set for the first time. The time is random, so
// that processes that begin together do not look together. Tests that count commands replace it.
var FirstLook = func() time.Duration { return rand.N(time.Minute) }

// Deadline returns a context that ends, after a timeout if it does not by itself.
func Deadline(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// Run executes commands in one trip, to each node of a cluster in parallel. Every command has its own error.
func (c *Conn) Run(ctx context.Context, cmds ...redis.Cmder) {
	if len(cmds) == 1 {
		_ = c.RDB.Process(ctx, cmds[0])
		return
	}
	const most = 8192 // of a pipeline, so that its memory is bounded
	for len(cmds) > 0 {
		n := min(len(cmds), most)
		pipe := c.RDB.Pipeline()
		_ = pipe.BatchProcess(ctx, cmds[:n]...)
		_, _ = pipe.Exec(ctx)
		cmds = cmds[n:]
	}
}

// ForAll runs the commands that belong to each of count partitions, many in a trip, and calls then, unless it is nil,
// with those of each.
func (c *Conn) ForAll(ctx context.Context, count int, commands func(part int) []redis.Cmder,
	then func(part int, cmds []redis.Cmder) error) error {
	const together = 256
	for first := 0; first < count; first += together {
		var all []redis.Cmder
		ends := []int{0}
		last := min(count, first+together)
		for part := first; part < last; part++ {
			all = append(all, commands(part)...)
			ends = append(ends, len(all))
		}
		c.Run(ctx, all...)
		for part := first; part < last; part++ {
			cmds := all[ends[part-first]:ends[part-first+1]]
			for _, cmd := range cmds {
				if err := cmd.Err(); err != nil {
					return Foreign(err, fmt.Sprint(cmd.Args()[1]), nil)
				}
			}
			if then == nil {
				continue
			}
			if err := then(part, cmds); err != nil {
				return err
			}
		}
	}
	return nil
}
