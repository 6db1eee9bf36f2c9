package storecmd

import (
	"io"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/clitest"
)

// TestThePagesHaveCommandsThatParse holds lines of the pages that run siftkv to the commands and flags there are.
func TestThePagesHaveCommandsThatParse(t *testing.T) {
	lines := 0
	for page, commandLines := range clitest.CommandLines(t, "siftkv") {
		for _, argv := range commandLines {
			lines++
			_, err := parseLine(t, argv)
			assert.NoError(t, err, "%s: %q", page, argv)
		}
	}
	require.Greater(t, lines, 15, "the list is real")
}

func parseLine(t *testing.T, argv []string) (*kong.Context, error) {
	t.Helper()
	spec := cli.Program{Name: "siftkv", Vars: kong.Vars{"version": cli.Version("siftkv")}, Helps: helpTexts,
		Examples: examples, Stdout: io.Discard, Stderr: io.Discard}
	return spec.Parse(t.Context(), argv, &commands{}, &program{})
}

func TestEveryHelpHasExamplesThatParse(t *testing.T) {
	parsed, err := parseLine(t, []string{"siftkv", "version"})
	require.NoError(t, err)
	clitest.RequireExamples(t, "siftkv", parsed.Model.Leaves(true), func(argv []string) error {
		_, err := parseLine(t, argv)
		return err
	})
}
