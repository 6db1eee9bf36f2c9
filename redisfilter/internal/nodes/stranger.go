package nodes

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Attend makes the watch hear of data that comes from a node that the last poll did not list as a
// master: a replica that was promoted since, on a connection from before. Call it before the client's
// first command; only a cluster's client opens connections to replicas.
func (w *Watch) Attend(rdb redis.UniversalClient) {
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(c *redis.Client) { c.AddHook(stranger{w, c.Options().Addr}) })
	}
}

// A stranger is a node's hook that puts all confirmations in doubt after a read of data from it while it
// is not known as a master, before the caller sees the reply.
type stranger struct {
	watch *Watch
	addr  string
}

// reads are the commands whose zeros may be taken for "no".
var reads = map[string]bool{
	"get": true, "getrange": true, "bitfield": true, "bitfield_ro": true, "evalsha": true, "eval": true,
}

func (s stranger) doubt(cmds ...redis.Cmder) {
	if len(cmds) > 0 && reads[cmds[0].Name()] && !s.watch.Map().master(s.addr) {
		s.watch.doubtFrom(time.Now())
	}
}

// DialHook changes nothing.
func (s stranger) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook looks at one command.
func (s stranger) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		s.doubt(cmd)
		return err
	}
}

// ProcessPipelineHook looks at the first of many.
func (s stranger) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		s.doubt(cmds...)
		return err
	}
}
