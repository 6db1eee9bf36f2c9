package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

type commands struct {
	Version VersionFlag `short:"V"`
	Sift    siftCommand `cmd:"" help:"Let keys through."`
	Settle  siftCommand `cmd:"" help:"Wait."`
}

type siftCommand struct {
	Reverse bool   `help:"Backwards, by ${word}."`
	Gently  bool   `help:"${gently}"`
	Twice   bool   `help:"${twice}" set:"twice=Two times."`
	Mesh    string `enum:"coarse,fine" default:"coarse"`
}

var errRan = errors.New("ran")

func (c *siftCommand) Run(ctx context.Context, out *bytes.Buffer) error {
	if c.Reverse {
		out.WriteString("backwards")
	}
	return errors.Join(errRan, ctx.Err())
}

func sieve(stdout, stderr io.Writer) *Program {
	return &Program{Name: "sieve", Description: "Sifts.", Stdout: stdout, Stderr: stderr,
		Vars:  kong.Vars{"version": "sieve 7", "word": "hand"},
		Helps: map[string]string{"gently": "With a light ${word}.", "twice": "Never printed."}}
}

func parse(t *testing.T, args ...string) (run *kong.Context, out *bytes.Buffer, err error) {
	t.Helper()
	out = &bytes.Buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := sieve(out, out)
	run, err = p.Parse(ctx, append([]string{"sieve"}, args...), &commands{}, out)
	return run, out, err
}

func TestACommandGetsWhatIsBound(t *testing.T) {
	t.Parallel()
	run, out, err := parse(t, "sift", "--reverse")
	require.NoError(t, err)
	err = run.Run()
	require.ErrorIs(t, err, errRan)
	require.ErrorIs(t, err, context.Canceled, "the context is the caller's")
	require.Equal(t, "backwards", out.String())
}

func TestHelpAndVersionLeaveNothingToRun(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"--help": "Sifts.", "--version": "sieve 7"} {
		run, out, err := parse(t, args)
		require.NoError(t, err)
		require.Nil(t, run)
		require.Contains(t, out.String(), want)
	}
	_, out, err := parse(t, "sift", "--help")
	require.NoError(t, err)
	for _, help := range []string{"Backwards, by hand.", "With a light hand.", "Two times."} {
		require.Contains(t, out.String(), help)
	}
}

func TestErrorsOfUsageNameWhatWasMeant(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`unexpected argument sfit, did you mean "sift"?; see sieve --help`:               {"sfit"},
		`unknown flag --revrese, did you mean "--reverse"?; see sieve --help`:            {"sift", "--revrese"},
		`unknown flag --xyz; see sieve --help`:                                           {"sift", "--xyz"},
		`expected one of "sift", "settle"; see sieve --help`:                             {"--"},
		`--mesh must be one of "coarse","fine" but got "fnie"; see sieve --help`:         {"sift", "--mesh", "fnie"},
		`unexpected argument s, did you mean one of "sift", "settle"?; see sieve --help`: {"s"},
	} {
		run, out, err := parse(t, args...)
		require.EqualError(t, err, want)
		require.Nil(t, run)
		require.Empty(t, out.String())
	}
}
