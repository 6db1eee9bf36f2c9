package servertest

import (
	"context"
	"net"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// RedisServer is a redis-server that keeps nothing on disk.
type RedisServer struct {
	Addr string

	t       *testing.T
	binary  string
	process *process
}

// Redis starts a redis-server, or returns nil.
func Redis(t *testing.T) *RedisServer {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis-server", "SIFTKV_REDIS", "a server in this process")
		return nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &RedisServer{Addr: listener.Addr().String(), t: t, binary: binary}
	require.NoError(t, listener.Close())
	s.Start()
	return s
}

// Start starts the server again, empty, after Kill.
func (s *RedisServer) Start() {
	s.t.Helper()
	_, port, err := net.SplitHostPort(s.Addr)
	require.NoError(s.t, err)
	cmd := exec.Command(s.binary, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	cmd.Dir = s.t.TempDir()
	cmd.SysProcAttr = attributes()
	client := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	s.process = launch(s.t, cmd, func(ctx context.Context) error { return client.Ping(ctx).Err() })
}

// Kill ends the server at once. What it held is lost.
func (s *RedisServer) Kill() { s.process.kill() }
