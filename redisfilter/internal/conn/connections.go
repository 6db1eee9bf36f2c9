package conn

import (
	"context"
	"net"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Connections are those of a client with one address, be it of a server, of a proxy, or a name. After a failover the
// address leads to another server, but connections that were made before stay with the old one. That may be a replica
// now, or cut off, and lack keys that its successor was told of. Polls use one connection and cannot vouch for what
// the others lead to. So all are closed when the watch sees another server behind the address; new ones are judged
// before they are used.
type connections struct {
	mu   sync.Mutex
	open map[*connection]struct{}
}

// note begins to note the connections of a client that has made none.
func (cs *connections) note(rdb *redis.Client) {
	cs.open = map[*connection]struct{}{}
	rdb.AddHook(cs)
}

// closeAll closes all connections. go-redis makes new ones, which are judged before they are used.
func (cs *connections) closeAll() {
	cs.mu.Lock()
	all := cs.open
	cs.open = map[*connection]struct{}{}
	cs.mu.Unlock()
	for c := range all {
		_ = c.Conn.Close()
	}
}

// DialHook notes connections.
func (cs *connections) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialed, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &connection{dialed, cs}
		cs.mu.Lock()
		cs.open[c] = struct{}{}
		cs.mu.Unlock()
		if raw, ok := dialed.(syscall.Conn); ok { // go-redis looks through it whether the server hung up
			return &rawConnection{c, raw}, nil
		}
		return c, nil
	}
}

func (cs *connections) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (cs *connections) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type connection struct {
	net.Conn
	of *connections
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

type rawConnection struct {
	*connection
	syscall.Conn
}
