package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// The tests start real servers, Redis and PostgreSQL, each in a temporary directory. They end with the test, and on
// Linux with its process. Where a program is missing, a stand-in in the test's process takes its place, which the test
// logs. SIFTKV_REDIS=required and SIFTKV_POSTGRES=required make that a failure.

// await waits until condition returns true. It has no limit of its own: no time is
// long enough for every machine, and what never happens ends with the time limit of
// go test, which says where the test was.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	for !condition() {
		time.Sleep(time.Millisecond)
	}
}

// launches starts processes on one thread that never ends: Linux kills a child with
// the thread that made it.
var launches = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// process is a server. Its methods belong to the test's goroutine.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{}
}

// launch starts a server and waits until ping succeeds, or the server has ended.
func launch(t *testing.T, cmd *exec.Cmd, ping func(context.Context) error) *process {
	t.Helper()
	output, err := os.CreateTemp(t.TempDir(), filepath.Base(cmd.Path))
	require.NoError(t, err)
	defer func() { _ = output.Close() }() // the server has its own handle
	cmd.Stdout, cmd.Stderr = output, output
	started := make(chan error)
	launches() <- func() { started <- cmd.Start() }
	require.NoError(t, <-started)
	p := &process{t: t, cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its output says more than its status
		close(p.ended)
	}()
	t.Cleanup(p.kill)
	for {
		err := ping(t.Context())
		if err == nil {
			return p
		}
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-p.ended:
		}
		log, _ := os.ReadFile(output.Name())
		require.NoError(t, err, "%s does not answer: %s", cmd.Path, log)
	}
}

// kill ends the server at once and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // fails only if it is gone already
	<-p.ended
}

// missing says which stand-in the test takes, or fails it if there must be none.
func missing(t *testing.T, program, variable, standIn string) {
	t.Helper()
	if os.Getenv(variable) == "required" {
		t.Fatalf("%s is not installed, and %s=required", program, variable)
	}
	t.Logf("%s is not installed: %s stands in for it; %s=required makes this a failure", program, standIn, variable)
}

// startPostgres starts a PostgreSQL server with an empty database, on a Unix socket, and
// returns how to connect to it, or "". Started by root, it runs as the user
// postgres, as PostgreSQL refuses root.
func startPostgres(t *testing.T) string {
	t.Helper()
	initdb, server := postgresProgram("initdb"), postgresProgram("postgres")
	if initdb == "" || server == "" {
		missing(t, "PostgreSQL", "SIFTKV_POSTGRES", "SQLite")
		return ""
	}
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // t.TempDir is closed to other users, and long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attributes := attributes()
	require.NoError(t, unprivileged(attributes, dir))

	data := filepath.Join(dir, "data")
	cmd := exec.Command(initdb, "-D", data, "-U", "guard", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
	cmd.Dir, cmd.SysProcAttr = dir, attributes
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", initdb, output)

	cmd = exec.Command(server, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	cmd.Dir, cmd.SysProcAttr = dir, attributes
	connect := fmt.Sprintf("host=%s user=guard dbname=postgres", dir)
	launch(t, cmd, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, connect)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	return connect
}

// postgresProgram returns the path of a program of PostgreSQL, or "". Debian keeps
// them out of the search path.
func postgresProgram(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(paths) == 0 {
		return ""
	}
	return paths[len(paths)-1]
}

// redisServer is a redis-server that keeps nothing on disk.
type redisServer struct {
	Addr string

	t       *testing.T
	binary  string
	args    []string
	process *process
}

// startRedis starts a redis-server with some arguments more, or returns nil.
func startRedis(t *testing.T, args ...string) *redisServer {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis-server", "SIFTKV_REDIS", "a server in this process")
		return nil
	}
	s := &redisServer{Addr: freeAddr(t), t: t, binary: binary, args: args}
	s.Start()
	return s
}

// freeAddr returns an address with a port below those that systems give to outgoing connections: none of these may take
// it while the server is away.
func freeAddr(t *testing.T) string {
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
func (s *redisServer) Start() {
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
func (s *redisServer) Kill() { s.process.kill() }
