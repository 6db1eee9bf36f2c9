package main

import (
	"bytes"
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// siftstress runs a command line and returns its exit status and output.
func siftstress(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	p := &program{stdout: &out, stderr: &err}
	status = p.run(ctx, append([]string{"siftstress"}, args...))
	return status, out.String(), err.String()
}

func TestExitStatus(t *testing.T) {
	status, stdout, stderr := siftstress(t.Context(), "--rounds", "1", "--features", "tx,snapshot", "--workers", "1",
		"-v")
	require.Zero(t, status, stderr+stdout)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "life 0, round 0: ")
	require.Contains(t, stdout, "1 rounds in 1 lives")
	require.Contains(t, stdout, "findings: 0\n")

	for _, args := range [][]string{{"--features", "nothing"}, {"--workers", "-1", "--rounds", "1"},
		{"--rounds", "x"}, {"--nothing"}} {
		status, _, stderr = siftstress(t.Context(), args...)
		require.Equal(t, statusUsage, status, args)
		require.Contains(t, stderr, "siftstress: ", args)
	}

	full, _ := (&failing{syscall.ENOSPC}).status(t, "--rounds", "1", "--features", "tx", "--workers", "1")
	require.Equal(t, statusFound, full, "nobody has read what was found")
	full, stderr = (&failing{syscall.ENOSPC}).status(t, "--version")
	require.Equal(t, statusFound, full)
	require.Contains(t, stderr, "no space left on device")
	left, stderr := (&failing{syscall.EPIPE}).status(t, "--rounds", "1", "--features", "tx", "--workers", "1", "-v")
	require.Zero(t, left, "the reader has gone")
	require.Empty(t, stderr)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	status, stdout, _ = siftstress(ended, "--rounds", "1000000")
	require.Equal(t, statusInterrupted, status)
	require.Contains(t, stdout, "0 rounds in 0 lives")

	status, stdout, _ = siftstress(t.Context(), "--help")
	require.Zero(t, status)
	require.Contains(t, stdout, "nospace")
}

// A failing output takes nothing.
type failing struct{ err error }

func (f *failing) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "out", Err: f.err}
}

// status runs a command line with that output.
func (f *failing) status(t *testing.T, args ...string) (status int, stderr string) {
	var errs bytes.Buffer
	p := &program{stdout: f, stderr: &errs}
	status = p.run(t.Context(), append([]string{"siftstress"}, args...))
	return status, errs.String()
}
