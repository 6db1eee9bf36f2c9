package cli

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// programCommands are those of a program with everything that Standard has.
type programCommands struct {
	Sift struct {
		Slow bool `help:".Slowly, as a 'dot' and a \\ say."`
	} `cmd:"" help:"Let keys through."`
	Trace struct {
		Make struct{} `cmd:"" help:"Make one."`
	} `cmd:"" help:"Traces."`
	Standard
}

func answer(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	p := Program{Name: "sieve", Description: "Sifts keys.\n\nIt is slow.", Vars: kong.Vars{"version": "sieve 7"},
		Examples: map[string]string{"": "sieve sift", "sift": "sieve sift --slow", "trace make": "sieve trace make"},
		Stdout:   &out, Stderr: &out}
	run, err := p.Parse(context.Background(), append([]string{"sieve"}, args...), &programCommands{})
	if run != nil {
		err = run.Run()
	}
	return out.String(), err
}

func TestEveryWayToAskForHelpAndVersion(t *testing.T) {
	t.Parallel()
	want, err := answer(t, "--help")
	require.NoError(t, err)
	require.Contains(t, want, "Examples:\n\n    sieve sift\n")
	for _, args := range [][]string{nil, {"help"}, {"-h"}} {
		got, err := answer(t, args...)
		require.NoError(t, err)
		require.Equal(t, want, got, args)
	}
	want, err = answer(t, "trace", "make", "--help")
	require.NoError(t, err)
	require.Contains(t, want, "Examples:\n\n    sieve trace make\n")
	got, err := answer(t, "help", "trace", "make")
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, arg := range []string{"--version", "-V", "version"} {
		got, err := answer(t, arg)
		require.NoError(t, err)
		require.Equal(t, "sieve 7\n", got)
	}
	_, err = answer(t, "help", "nothing")
	require.ErrorIs(t, err, ErrUsage)
}

func TestTheManualHasEveryCommandAndFlag(t *testing.T) {
	t.Parallel()
	page, err := answer(t, "man")
	require.NoError(t, err)
	for _, part := range []string{`.TH SIEVE 1 "" "sieve `, ".SH NAME\nsieve \\- Sifts keys\n",
		".SH DESCRIPTION\nIt is slow.\n", ".SS sieve sift\nLet keys through.",
		".SS sieve trace make", ".B \\-\\-slow\n\\&.Slowly, as a 'dot' and a \\e say.", ".B \\-V, \\-\\-version",
		".nf\n  sieve sift \\-\\-slow\n.fi"} {
		require.Contains(t, page, part)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff to read the page")
	}
	read := exec.Command(groff, "-man", "-Tascii", "-ww")
	read.Stdin = strings.NewReader(page)
	text, err := read.CombinedOutput()
	require.NoError(t, err)
	require.NotContains(t, string(text), "warning", string(text))
	require.Contains(t, string(text), "sieve sift --slow")
}
