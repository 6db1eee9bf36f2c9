package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, main) }

func TestTheProgramPrintsWhatItSays(t *testing.T) {
	want, err := os.ReadFile("output.txt")
	require.NoError(t, err)
	r := (&clitest.Process{Args: []string{t.TempDir()}}).Run(t)
	require.Zero(t, r.Status, r.Stderr)
	require.Equal(t, string(want), r.Stdout)
}
