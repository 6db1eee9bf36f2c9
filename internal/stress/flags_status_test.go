package stress

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// runArgs runs what the flags of a command line say, and returns the exit status and the
// output.
func runArgs(ctx context.Context, stdout io.Writer, args ...string) (status int, stderr string) {
	var errs bytes.Buffer
	set := flag.NewFlagSet("stress", flag.ContinueOnError)
	set.SetOutput(&errs)
	f := addFlags(set)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return statusOK, errs.String()
	case err != nil:
		return statusUsage, errs.String()
	}
	f.visit(set)
	return f.run(ctx, stdout, &errs), errs.String()
}

func TestExitStatus(t *testing.T) {
	var out bytes.Buffer
	status, stderr := runArgs(t.Context(), &out, "--rounds", "1", "--features", "tx,snapshot", "--workers", "1", "-v")
	require.Zero(t, status, stderr+out.String())
	require.Empty(t, stderr)
	require.Contains(t, out.String(), "life 0, round 0: ")
	require.Contains(t, out.String(), "1 rounds in 1 lives")
	require.Contains(t, out.String(), "findings: 0\n")

	for want, args := range map[string][]string{
		"no feature":           {"--features", "nothing"},
		"-1 workers":           {"--workers", "-1", "--rounds", "1"},
		"invalid value":        {"--rounds", "x"},
		"flag provided but no": {"--nothing"},
	} {
		status, stderr = runArgs(t.Context(), io.Discard, args...)
		require.Equal(t, statusUsage, status, args)
		require.Contains(t, stderr, want, args)
	}

	short := []string{"--rounds", "1", "--features", "tx", "--workers", "1", "-v"}
	full, stderr := runArgs(t.Context(), &failing{syscall.ENOSPC}, short...)
	require.Equal(t, statusFound, full, "nobody has read what was found")
	require.Contains(t, stderr, "no space left on device")
	left, stderr := runArgs(t.Context(), &failing{syscall.EPIPE}, short...)
	require.Zero(t, left, "the reader has gone")
	require.Empty(t, stderr)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	out.Reset()
	status, _ = runArgs(ended, &out, "--rounds", "1000000")
	require.Equal(t, statusInterrupted, status)
	require.Contains(t, out.String(), "0 rounds in 0 lives")

	status, stderr = runArgs(t.Context(), io.Discard, "--help")
	require.Zero(t, status)
	require.Contains(t, stderr, "nospace")
}

// Without flags there is no run but the short one; go test's own do not count.
func TestFlagsOfATestAreNotThoseOfARun(t *testing.T) {
	for given, args := range map[bool][]string{false: {"-test.v"}, true: {"-test.v", "-v"}} {
		set := flag.NewFlagSet("stress", flag.ContinueOnError)
		set.Bool("test.v", false, "")
		f := addFlags(set)
		require.NoError(t, set.Parse(args))
		f.visit(set)
		require.Equal(t, given, f.given, args)
		require.InDelta(t, 1, f.Minutes, 0)
	}
}

// A failing output takes nothing.
type failing struct{ err error }

func (f *failing) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "out", Err: f.err}
}
