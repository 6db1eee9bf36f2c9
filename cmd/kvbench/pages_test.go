package main

import (
	"io"
	"slices"
	"strings"
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

// TestTheSweepsOfThePagesHaveCells holds lines of the pages that run a sweep, except one over a trace of the reader's,
// to values that settings may have.
func TestTheSweepsOfThePagesHaveCells(t *testing.T) {
	t.Parallel()
	lines := 0
	for page, commandLines := range clitest.CommandLines(t, "kvbench") {
		for _, argv := range commandLines {
			if argv[1] != "sweep" || slices.Contains(argv, "app.trace") {
				continue
			}
			lines++
			for i, word := range argv {
				if strings.HasPrefix(word, "docs/") {
					argv[i] = "../../" + word
				}
			}
			status, stdout, stderr := kvbench(t, &program{}, append(argv[1:], "--plan")...)
			assert.Zero(t, status, "%s: %q: %s", page, argv, stderr)
			assert.NotEmpty(t, stdout, "%s: %q", page, argv)
		}
	}
	require.Greater(t, lines, 2, "the list is real")
}

func parseLine(t *testing.T, argv []string) (*kong.Context, error) {
	t.Helper()
	spec := cli.Program{Name: "kvbench", Stdout: io.Discard, Stderr: io.Discard, Vars: vars(), Helps: helps(),
		Examples: texts().Examples, Details: texts().Details}
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
