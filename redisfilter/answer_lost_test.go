package redisfilter_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
	"github.com/siftkv/siftkv/redisfilter/owners"
)

// patience is longer than go test lets a test run.
const patience = 24 * time.Hour

// A lossyConn loses the answer to the first command of a name that is sent while armed is set: it was executed.
type lossyConn struct {
	net.Conn
	command []byte
	armed   *atomic.Bool
	lost    atomic.Bool
	dead    bool // the answer came
}

func (c *lossyConn) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if bytes.Contains(data, c.command) && c.armed.CompareAndSwap(true, false) {
		c.lost.Store(true)
	}
	return n, err
}

func (c *lossyConn) Read(data []byte) (int, error) {
	if c.dead {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(data)
	if c.dead = c.lost.Load(); c.dead {
		return 0, io.EOF
	}
	return n, err
}

// Of a key whose answer was lost no process says that it was there: the client does not send it again.
func TestAddNewIsSentOnce(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	for name, test := range map[string]struct {
		command string
		options redisfilter.Options
	}{
		"fixed":   {"bitfield", redisfilter.Options{}},
		"growing": {"evalsha", redisfilter.Options{Growth: 2}},
		"owners":  {"evalsha", redisfilter.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			c := redistest.Opened(t, redisfilter.Open, redisfilter.ErrUnavailable, &redis.UniversalOptions{
				Addrs: []string{cluster.Servers[0].Addr, cluster.Servers[1].Addr},
				Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
					return &lossyConn{Conn: conn, command: []byte(test.command), armed: &armed}, err
				},
			})
			t.Cleanup(func() { _ = c.Close() })
			var add func([][]byte) ([]bool, error)
			if name == "owners" {
				w, err := owners.New(t.Context(), c, name, 1000, 0.01, &owners.Options{Timeout: patience})
				require.NoError(t, err)
				t.Cleanup(func() { _ = w.Close() })
				add = func(keys [][]byte) ([]bool, error) { return w.Of("owner").MAddNew(t.Context(), keys) }
			} else {
				o := test.options
				o.StartEmpty, o.Timeout = true, patience
				s, err := redisfilter.New(t.Context(), c, name, 1000, 0.01, &o)
				require.NoError(t, err)
				t.Cleanup(func() { _ = s.Close() })
				add = func(keys [][]byte) ([]bool, error) { return s.MAddNew(t.Context(), keys) }
			}
			_, err := add([][]byte{[]byte("a"), []byte("b"), []byte("c")}) // the servers know the script from then on
			require.NoError(t, err)
			for _, keys := range [][][]byte{{[]byte("one")}, {[]byte("two"), []byte("three")}} {
				armed.Store(true)
				_, err := add(keys)
				require.False(t, armed.Load(), "an answer was lost")
				require.ErrorIs(t, err, redisfilter.ErrUnavailable)
			}
		})
	}
}
