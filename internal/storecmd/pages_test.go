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
			spec := cli.Program{Name: "siftkv", Vars: kong.Vars{"version": version()}, Helps: helpTexts,
				Stdout: io.Discard, Stderr: io.Discard}
			_, err := spec.Parse(t.Context(), argv, &commands{}, &program{})
			assert.NoError(t, err, "%s: %q", page, argv)
		}
	}
	require.Greater(t, lines, 15, "the list is real")
}
