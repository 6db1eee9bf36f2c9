// Package clitest runs a program of the project as a process in the program's own tests.
// It can give it arguments of any bytes, outputs that are full or have no reader,
// signals, and the rights of another user. The test binary is the program.
package clitest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Variables of the environment that make the test binary the program.
const (
	program  = "CLITEST_PROGRAM"
	fileSize = "CLITEST_FILE_SIZE"
)

// Main is what TestMain calls. In a process that a test has started it is the program's
// main function.
func Main(m *testing.M, main func()) {
	if os.Getenv(program) == "" {
		heedSignals()
		os.Exit(m.Run())
	}
	if limit, err := strconv.ParseUint(os.Getenv(fileSize), 10, 64); err == nil {
		if err := limitFileSize(limit); err != nil {
			panic(err)
		}
	}
	main()
	os.Exit(0)
}

// heedSignals has the processes of tests heed signals that this one was told to ignore, as under
// nohup: a signal that is ignored stays so in a child, one that is caught does not.
func heedSignals() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// A Process says how a program is run.
type Process struct {
	Args   []string
	Stdin  io.Reader
	Stdout *os.File // nil: it is collected
	Stderr io.Writer

	// Full lets no file grow beyond FileSize bytes, as on a disk that is full.
	Full     bool
	FileSize int
	// Nobody takes the rights of root away; permissions do not apply to root.
	Nobody bool
	// Nohup has hangups ignored, as nohup does.
	Nohup bool
}

// A Result is how a process ended.
type Result struct {
	Status         int // -1: a signal killed it
	Stdout, Stderr string
}

// Run runs a program to its end.
func (p *Process) Run(t *testing.T) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := p.Command(t)
	if p.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if p.Stderr == nil {
		cmd.Stderr = &stderr
	}
	require.NoError(t, cmd.Start())
	_ = cmd.Wait() // the status says it
	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// RunWell runs a program that has to succeed without a word on standard error, and returns its output.
func RunWell(t *testing.T, args ...string) string {
	t.Helper()
	r := (&Process{Args: args}).Run(t)
	require.Zero(t, r.Status, "%q: %s", args, r.Stderr)
	require.Empty(t, r.Stderr, "%q", args)
	return r.Stdout
}

// NobodyID is the user, and the group, that own nothing.
const NobodyID = 65534

// Command returns the process for a test that starts it, watches it and waits for it.
func (p *Process) Command(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, p.Args...)
	cmd.Env = append(os.Environ(), program+"=1")
	if p.Full {
		cmd.Env = append(cmd.Env, fileSize+"="+strconv.Itoa(p.FileSize))
	}
	if p.Nobody && os.Geteuid() == 0 {
		// Other users can read the binary, but not its directories.
		cmd.Path = "/proc/self/exe"
		runAs(cmd, NobodyID)
	}
	if p.Nohup {
		cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, self}, p.Args...)
		cmd.Path, err = exec.LookPath("sh")
		require.NoError(t, err)
	}
	cmd.Stdin, cmd.Stderr = p.Stdin, p.Stderr
	if p.Stdout != nil {
		cmd.Stdout = p.Stdout
	}
	return cmd
}
