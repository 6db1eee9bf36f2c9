package servertest

import (
	"context"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// RedisServer is a redis-server that keeps nothing on disk.
type RedisServer struct {
	Addr string

	t       *testing.T
	binary  string
	args    []string
	process *process
}

// Redis starts a redis-server with some arguments more, or returns nil.
func Redis(t *testing.T, args ...string) *RedisServer {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis-server", "SIFTKV_REDIS", "a server in this process")
		return nil
	}
	s := &RedisServer{Addr: FreeAddr(t), t: t, binary: binary, args: args}
	s.Start()
	return s
}

// FreeAddr returns an address with a port below those that systems give to outgoing connections: none of these may take
// it while the server is away.
func FreeAddr(t *testing.T) string {
	t.Helper()
	var last error
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(20_000)))
		listener, err := net.Listen("tcp", addr)
		if err == nil {
			require.NoError(t, listener.Close())
			return addr
		}
		last = err
	}
	require.NoError(t, last)
	return ""
}

// Start starts the server again, empty, after Kill.
func (s *RedisServer) Start() {
	s.t.Helper()
	_, port, err := net.SplitHostPort(s.Addr)
	require.NoError(s.t, err)
	cmd := exec.Command(s.binary, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	cmd.Args = append(cmd.Args, s.args...)
	cmd.Dir = s.t.TempDir()
	cmd.SysProcAttr = attributes()
	client := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	s.process = launch(s.t, cmd, func(ctx context.Context) error { return client.Ping(ctx).Err() })
}

// Kill ends the server at once. What it held is lost.
func (s *RedisServer) Kill() { s.process.kill() }
