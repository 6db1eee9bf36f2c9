package redisfilter

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

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

// Of a key whose answer was lost nobody says that it was there: the client does not send it again.
func TestAddNewIsSentOnce(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	for name, test := range map[string]struct {
		command string
		options Options
	}{"fixed": {"bitfield", Options{}}, "growing": {"evalsha", Options{Growth: 2}}, "windows": {"evalsha", Options{}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			c, err := Open(t.Context(), redistest.Patient(&redis.UniversalOptions{
				Addrs: []string{cluster.Servers[0].Addr, cluster.Servers[1].Addr},
				Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
					return &lossyConn{Conn: conn, command: []byte(test.command), armed: &armed}, err
				},
			}))
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			var add func([][]byte) ([]bool, error)
			if name == "windows" {
				w, err := NewWindows(t.Context(), c, name, 1000, 0.01, &WindowOptions{Timeout: patience})
				require.NoError(t, err)
				t.Cleanup(func() { _ = w.Close() })
				add = func(keys [][]byte) ([]bool, error) { return w.Of("owner").MAddNew(t.Context(), keys) }
			} else {
				s := wholeSet(t, c, name, 1000, test.options)
				add = func(keys [][]byte) ([]bool, error) { return s.MAddNew(t.Context(), keys) }
			}
			_, err = add(keysTo(3)) // the servers know the script from then on
			require.NoError(t, err)
			for _, keys := range [][][]byte{{[]byte("one")}, {[]byte("two"), []byte("three")}} {
				armed.Store(true)
				_, err := add(keys)
				require.False(t, armed.Load(), "an answer was lost")
				require.ErrorIs(t, err, ErrUnavailable)
			}
		})
	}
}
