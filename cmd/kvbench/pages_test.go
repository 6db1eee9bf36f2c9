package main

import (
	"io"
	"testing"

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
			spec := cli.Program{Name: "kvbench", Stdout: io.Discard, Stderr: io.Discard, Vars: vars(), Helps: helps()}
			_, err := spec.Parse(t.Context(), argv, &commands{}, &program{})
			assert.NoError(t, err, "%s: %q", page, argv)
		}
	}
	require.Greater(t, lines, 30, "the list is real")
}
