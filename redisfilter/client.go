package redisfilter

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// A Client is a program's connections to the Redis that holds its sets: a server, a master with its
// Sentinels, or a cluster. One serves all sets of a program and any number of goroutines.
type Client struct {
	rdb     redis.UniversalClient
	watch   *nodes.Watch
	cluster bool // else one server has all slots
	follows bool // commands go to another server by themselves when theirs ceases to be the master
}

// Open connects, and fails if no master answers. The options are go-redis'; see there for their
// defaults. Open sets some of them: deadlines of contexts are kept, nothing is read from replicas, and no
// connections are made ahead.
//
// A client has connections of its own because its answers depend on them: every new connection tells
// whether the server behind it is still the one that was trusted, before it answers anything.
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
	opts.MaxRetries = -1   // a retry could hide a failover, and that AddNew was executed twice; see once
	opts.MinIdleConns = 0  // they would be made before connections are noted
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opts.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		if err := watch.OnConnect(ctx, c); err != nil || connected == nil {
			return err
		}
		return connected(ctx, c)
	}
	c := &Client{rdb: redis.NewUniversalClient(&opts), watch: watch}
	_, c.cluster = c.rdb.(*redis.ClusterClient)
	c.follows = c.cluster || o.MasterName != "" || o.Dialer != nil
	watch.Attend(c.rdb)
	if one, ok := c.rdb.(*redis.Client); ok {
		noted := &connections{}
		noted.note(one)
		watch.OnMove(noted.closeAll)
	}
	err := watch.Start(ctx, c.rdb)
	if err == nil && !c.follows && watch.Map().Replica() {
		watch.Stop()
		err = nodes.ErrReplica
	}
	if err != nil {
		_ = c.rdb.Close()
		return nil, fmt.Errorf("redisfilter: open %v: %w", o.Addrs, c.unavailable(err))
	}
	return c, nil
}

// Close closes the connections. Sets of the client answer "maybe" and ErrClosed from then on; close them first.
func (c *Client) Close() error {
	c.watch.Stop()
	return c.rdb.Close()
}

// run executes commands in one trip, to each node of a cluster in parallel. Every command has its own error.
func (c *Client) run(ctx context.Context, cmds ...redis.Cmder) {
	if len(cmds) == 1 {
		_ = c.rdb.Process(ctx, cmds[0])
		return
	}
	const most = 8192 // of a pipeline, so that its memory is bounded
	for len(cmds) > 0 {
		n := min(len(cmds), most)
		pipe := c.rdb.Pipeline()
		_ = pipe.BatchProcess(ctx, cmds[:n]...)
		_, _ = pipe.Exec(ctx)
		cmds = cmds[n:]
	}
}

// forAll runs the commands that belong to each of count partitions, many in a trip, and calls then,
// unless it is nil, with those of each.
func (c *Client) forAll(ctx context.Context, count int, commands func(part int) []redis.Cmder,
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
		c.run(ctx, all...)
		for part := first; part < last; part++ {
			cmds := all[ends[part-first]:ends[part-first+1]]
			for _, cmd := range cmds {
				if err := cmd.Err(); err != nil {
					return foreign(err, fmt.Sprint(cmd.Args()[1]), nil)
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
