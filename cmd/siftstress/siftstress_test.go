package main

import (
	"bytes"
	"context"
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
	status, stdout, stderr := siftstress(t.Context(), "--rounds", "1", "--features", "tx,snapshot", "--workers", "1", "-v")
	require.Zero(t, status, stderr+stdout)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "life 0, round 0: ")
	require.Contains(t, stdout, "1 rounds in 1 lives")
	require.Contains(t, stdout, "findings: 0\n")

	for _, args := range [][]string{{"--features", "nothing"}, {"--workers", "-1", "--rounds", "1"}, {"--rounds", "x"}, {"--nothing"}} {
		status, _, stderr = siftstress(t.Context(), args...)
		require.Equal(t, statusUsage, status, args)
		require.Contains(t, stderr, "siftstress: ", args)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	status, stdout, _ = siftstress(ended, "--rounds", "1000000")
	require.Equal(t, statusInterrupted, status)
	require.Contains(t, stdout, "0 rounds in 0 lives")

	status, stdout, _ = siftstress(t.Context(), "--help")
	require.Zero(t, status)
	require.Contains(t, stdout, "nospace")
}
