package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
)

// The stores of a process that was killed go with the next run, those of one that is alive stay.
func TestTheNextRunRemovesWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := (&clitest.Process{Args: []string{"run", "--keys", "1000", "--lookups", "10000", "--reps", "1000",
		"--dir", dir, "-q"}}).Command(t)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(clitest.Names(t, dir)) == 2 }, time.Minute, time.Millisecond,
		"a directory and its lock file")
	atWork := clitest.Names(t, dir)
	next := []string{"scale", "--keys", "1000", "--reps", "1", "--seconds", "0.001", "--dir", dir}
	require.Zero(t, process(t, next...).Status)
	require.Equal(t, atWork, clitest.Names(t, dir), "it is alive")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Equal(t, atWork, clitest.Names(t, dir), "nobody has removed anything yet")
	require.Zero(t, process(t, next...).Status)
	require.Empty(t, clitest.Names(t, dir))
}
