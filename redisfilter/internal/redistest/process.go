package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

var errPortTaken = errors.New("another program listens on the port")

type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// launches runs exec's forks on one thread that never ends: Linux sends the death signal when the
// thread that forked ends, not when its process does.
var launches = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		lockToThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// launch starts redis-server in dir and waits until it answers. errPortTaken asks for another port.
func launch(binary, dir string, port int, args []string) (*process, error) {
	if !portsFree(port) {
		return nil, errPortTaken
	}
	logFile := filepath.Join(dir, "redis.log")
	cmd := exec.Command(binary, append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0", "--logfile", logFile}, args...)...)
	cmd.Dir = dir
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	launches() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its log says more than its status
		close(p.done)
	}()
	if err := p.awaitAnswer(addrOf(port)); err != nil {
		p.kill()
		log, _ := os.ReadFile(logFile)
		if bytes.Contains(log, []byte("Address already in use")) {
			return nil, errPortTaken
		}
		return nil, fmt.Errorf("redis-server %s: %w; its log:\n%s", addrOf(port), err, log)
	}
	return p, nil
}

// awaitAnswer waits until this process, and no other program on the port, answers, or the process has ended.
func (p *process) awaitAnswer(addr string) error {
	ctx := context.Background()
	c := newClient(addr)
	defer c.Close()
	want := strconv.Itoa(p.cmd.Process.Pid)
	for {
		conn, err := net.Dial("tcp", addr) // the client would log that no server listens yet
		if err == nil {
			conn.Close()
			var info map[string]string
			if info, err = infoSection(ctx, c, "server"); err == nil && info["process_id"] == want {
				return nil
			}
		}
		select {
		case <-p.done:
			return errors.New("ended before it answered")
		case <-time.After(pollInterval):
		}
	}
}

// signal sends sig, unless the process has ended.
func (p *process) signal(sig os.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// kill ends the process at once, even a stopped one, and waits until it is gone.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL) // fails only if it is gone already
	<-p.done
}

// pickPort returns a port whose bus port is free too. Both lie outside of the range of ports that
// systems give to connections.
func pickPort() int {
	const first, last, tries = 10_000, 20_000, 200
	port := 0
	for range tries {
		if port = first + rand.IntN(last-first); portsFree(port) {
			break
		}
	}
	return port
}

// portsFree reports whether no process listens on the port or on the port of its cluster bus, which is 10,000 higher.
func portsFree(port int) bool {
	for _, p := range []int{port, port + 10_000} {
		l, err := net.Listen("tcp", addrOf(p))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// Patient returns the options with waits of a minute where they say nothing: go-redis gives a server 3 s to answer,
// which is short for a machine that is busy. A server that is gone, or was stopped, is waited for no longer.
func Patient(o *redis.UniversalOptions) *redis.UniversalOptions {
	p := *o
	for _, wait := range []*time.Duration{&p.DialTimeout, &p.ReadTimeout, &p.WriteTimeout, &p.PoolTimeout} {
		if *wait == 0 {
			*wait = time.Minute
		}
	}
	return &p
}

func addrOf(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// patience is longer than go test lets a test run.
const patience = 24 * time.Hour

// newClient returns a client that tries once: a test wants to see what happened. It waits for a server that is
// slow, or was stopped, until the command's context ends.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialTimeout: patience, DialerRetries: 1,
		ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, ContextTimeoutEnabled: true})
}
