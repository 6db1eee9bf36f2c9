package storecmd

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/clitest"
)

// TestThePagesHaveCommandsThatParse holds lines of the pages that run siftkv to the commands and flags there are.
func TestThePagesHaveCommandsThatParse(t *testing.T) {
	lines, least := 0, 15
	if _, err := os.Stat("../../docs"); err != nil {
		least = 5 // a module that go get has fetched has the README alone
	}
	for page, commandLines := range clitest.CommandLines(t, "siftkv") {
		for _, argv := range commandLines {
			lines++
			_, err := parseLine(t, argv)
			assert.NoError(t, err, "%s: %q", page, argv)
		}
	}
	require.Greater(t, lines, least, "the list is real")
}

// TestTheTerminalOfTheREADME runs the commands that the README shows first, and compares what they print.
func TestTheTerminalOfTheREADME(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(page), "\n    $ siftkv ")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "\n\n")
	dir := filepath.Join(t.TempDir(), "data")
	steps := strings.Split(strings.ReplaceAll(block, "\n    ", "\n"), "\n$ siftkv ")
	require.Greater(t, len(steps), 5)
	for _, step := range steps {
		line, want, _ := strings.Cut(step, "\n")
		got := ok(t, strings.Fields(strings.Replace(line, " data", " "+dir, 1))...)
		require.Equal(t, want, strings.TrimSuffix(got, "\n"), line)
	}
}

func parseLine(t *testing.T, argv []string) (*kong.Context, error) {
	t.Helper()
	spec := cli.Program{Name: "siftkv", Vars: kong.Vars{"version": cli.Version("siftkv")}, Helps: texts.Helps,
		Examples: texts.Examples, Details: texts.Details, Stdout: io.Discard, Stderr: io.Discard}
	return spec.Parse(t.Context(), argv, &commands{}, &program{})
}

func TestEveryHelpHasExamplesThatParse(t *testing.T) {
	parsed, err := parseLine(t, []string{"siftkv", "version"})
	require.NoError(t, err)
	commands := parsed.Model.Leaves(true)
	clitest.RequireExamples(t, "siftkv", commands, func(argv []string) error {
		_, err := parseLine(t, argv)
		return err
	})
	names := []string{""} // of the program itself
	for _, c := range commands {
		names = append(names, c.Path())
	}
	require.Subset(t, names, slices.Collect(maps.Keys(texts.Details)), "texts of commands that are not there")
	require.Subset(t, names, slices.Collect(maps.Keys(texts.Examples)), "texts of commands that are not there")
}
