package redistest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
)

// A Server is a Redis server that ends with its test. Its methods fail the test where they cannot
// do what they say; only Kill, Stop and Continue may be called from other goroutines than the
// test's.
type Server struct {
	// Addr is the server's address, host:port. It stays the same across Restart.
	Addr string

	t       testing.TB
	binary  string
	dir     string
	port    int
	args    []string
	process *process          // nil: the stand-in
	standIn *inprocess.Server // nil: a process
	client  *redis.Client
}

// Start starts an empty server, which keeps nothing on disk, and waits until it answers. Further
// arguments go to redis-server, such as "--maxmemory", "10mb"; with "--appendonly", "yes" the keys
// outlive Kill and Restart.
//
// Without a redis-server the in-process stand-in serves instead, and the test's log says so. A
// test that gives arguments or calls RequireReal is skipped then.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	binary, ok := lookup(t)
	if !ok && len(args) > 0 {
		RequireReal(t)
	}
	if !ok {
		return startStandIn(t)
	}
	s := &Server{t: t, binary: binary, dir: t.TempDir(), args: args}
	const tries = 20
	var err error
	for range tries {
		s.port = pickPort()
		s.Addr = addrOf(s.port)
		if s.process, err = launch(binary, s.dir, s.port, args); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() { s.process.kill() })
	s.client = newClient(s.Addr)
	t.Cleanup(func() { s.client.Close() })
	return s
}

func startStandIn(t testing.TB) *Server {
	t.Helper()
	t.Log("redistest: no redis-server is installed: the in-process server stands in")
	in, err := inprocess.Start()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(in.Close)
	s := &Server{t: t, standIn: in, Addr: in.Addr(), client: newClient(in.Addr())}
	t.Cleanup(func() { s.client.Close() })
	return s
}

// RequireReal skips a test that the in-process stand-in cannot serve (replicas, clusters,
// tracking, restarts) where no redis-server is installed, and fails it with SIFTKV_REDIS=required.
func RequireReal(t testing.TB) {
	t.Helper()
	if _, ok := lookup(t); !ok {
		t.Skip("redistest: no redis-server is installed, and the in-process server lacks what this test needs")
	}
}

// lookup finds redis-server. It fails the test if there is none and there has to be one.
func lookup(t testing.TB) (binary string, ok bool) {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil && os.Getenv("SIFTKV_REDIS") == "required" {
		t.Fatalf("redistest: SIFTKV_REDIS=required, but there is no redis-server: %v", err)
	}
	return binary, err == nil
}

// Real reports whether the server is a redis-server, not the stand-in.
func (s *Server) Real() bool { return s.process != nil }

// Client returns a client of the server that tries each command once. It is closed with the test.
func (s *Server) Client() *redis.Client { return s.client }

// Kill ends the server at once, as a crash would. The stand-in is closed.
func (s *Server) Kill() {
	if s.process == nil {
		s.standIn.Close()
		return
	}
	s.process.kill()
}

// Stop suspends the server: connections stay open, and nothing is answered until Continue.
func (s *Server) Stop() { s.send(stopSignal) }

// Continue ends what Stop began.
func (s *Server) Continue() { s.send(continueSignal) }

func (s *Server) send(sig os.Signal) {
	s.t.Helper()
	if s.process == nil {
		s.t.Error("redistest: the in-process server cannot be stopped: call RequireReal first")
		return
	}
	if err := s.process.signal(sig); err != nil {
		s.t.Errorf("redistest: send %v to %s: %v", sig, s.Addr, err)
	}
}

// Restart kills the server and starts it again with its port, directory and arguments. It comes
// back empty unless it was started with "--appendonly", "yes".
func (s *Server) Restart() {
	s.t.Helper()
	if s.process == nil {
		RequireReal(s.t)
	}
	s.process.kill()
	p, err := launch(s.binary, s.dir, s.port, s.args)
	if err != nil {
		s.t.Fatalf("redistest: restart: %v", err)
	}
	s.process = p
}

// do runs commands that must succeed.
func (s *Server) do(ctx context.Context, args ...any) *redis.Cmd {
	s.t.Helper()
	cmd := s.client.Do(ctx, args...)
	if err := cmd.Err(); err != nil {
		s.t.Fatalf("redistest: %s: %v: %v", s.Addr, args, err)
	}
	return cmd
}
