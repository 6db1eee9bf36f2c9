// Package servertest starts real servers for tests: Redis and PostgreSQL, each in a
// temporary directory, reached by nobody but the test. They end with the test, and
// on Linux with its process.
//
// Where a program is missing the function returns nil, and the test uses what runs
// in its own process, and says so. SIFTKV_REDIS=required and
// SIFTKV_POSTGRES=required make that a failure.
package servertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Await waits until condition returns true. It has no limit of its own: no time is
// long enough for every machine, and what never happens ends with the time limit of
// go test, which says where the test was.
func Await(t *testing.T, condition func() bool) {
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
