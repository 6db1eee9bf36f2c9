package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnErrorIsOneLineAndSaidOnce(t *testing.T) {
	t.Parallel()
	cause := errors.New("no space left")
	write := fmt.Errorf("write f: %w", cause)
	for want, err := range map[string]error{
		"no space left":                   cause,
		"put: write f: no space left":     errors.Join(fmt.Errorf("put: %w", write), write, cause),
		"write f: no space left; reading": errors.Join(write, errors.Join(cause, errors.New("reading")), write),
	} {
		require.Equal(t, want, Text(err))
	}
}

// failing is an output that fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "out", Err: f.err}
}

func TestAReaderThatLeavesEndsTheOutputAlone(t *testing.T) {
	t.Parallel()
	n, err := io.WriteString(Output(failing{syscall.EPIPE}), "text")
	require.NoError(t, err)
	require.Equal(t, 4, n)
	_, err = io.WriteString(Output(failing{syscall.ENOSPC}), "text")
	require.ErrorIs(t, err, syscall.ENOSPC)
}

func TestAnAnswerThatCannotBeWrittenIsNoErrorOfUsage(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--help", "--version", "-V"} {
		for cause, want := range map[error]error{syscall.ENOSPC: syscall.ENOSPC, syscall.EPIPE: nil} {
			run, err := sieve(failing{cause}, io.Discard).Parse(t.Context(), []string{"sieve", flag}, &commands{})
			require.Nil(t, run)
			require.ErrorIs(t, err, want, flag)
			require.NotErrorIs(t, err, ErrUsage)
		}
	}
}
