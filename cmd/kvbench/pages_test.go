package main

import (
	"io"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/clitest"
)

// TestThePagesHaveCommandsThatParse holds lines of the pages that run kvbench to the commands and flags there are.
func TestThePagesHaveCommandsThatParse(t *testing.T) {
	lines := 0
	for page, commandLines := range clitest.CommandLines(t, "kvbench") {
		for _, argv := range commandLines {
			lines++
			_, err := parseLine(t, argv)
			assert.NoError(t, err, "%s: %q", page, argv)
		}
	}
	require.Greater(t, lines, 30, "the list is real")
}

func parseLine(t *testing.T, argv []string) (*kong.Context, error) {
	t.Helper()
	spec := cli.Program{Name: "kvbench", Stdout: io.Discard, Stderr: io.Discard, Vars: vars(), Helps: helps(),
		Examples: texts().Examples}
	return spec.Parse(t.Context(), argv, &commands{}, &program{})
}

func TestEveryHelpHasExamplesThatParse(t *testing.T) {
	parsed, err := parseLine(t, []string{"kvbench", "version"})
	require.NoError(t, err)
	clitest.RequireExamples(t, "kvbench", parsed.Model.Leaves(true), func(argv []string) error {
		_, err := parseLine(t, argv)
		return err
	})
}
