package stress

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// TestStress does what the flags of the command line say (docs/stress.md). Without flags it
// is short: several goroutines, one alone, and several processes of a store in an object
// store. The patience is that of a machine that does other things.
func TestStress(t *testing.T) {
	if commandLine.given {
		runStatus = commandLine.run(runContext, os.Stdout, os.Stderr)
		require.Equal(t, statusOK, runStatus, "exit status")
		return
	}
	t.Parallel()
	for name, c := range map[string]Config{
		"several workers":    {Rounds: 48, Workers: 4, Place: "disk"},
		"one worker":         {Rounds: 24, Workers: 1, Seed: 100, Place: "disk"},
		"in an object store": {Rounds: 16, Workers: 3, Place: "objects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			c.Rounds = max(scale.Count(scale.Fewer(c.Rounds/3, c.Rounds/6), c.Rounds), 6)
			c.Log, c.Patience = &log, 5*time.Minute
			r, err := Run(t.Context(), c)
			require.NoError(t, err)
			require.Empty(t, r.Findings, log.String())
			require.Equal(t, c.Rounds, r.Rounds())
			require.Greater(t, r.AcknowledgedChecked(), c.Rounds)
			if c.Place == "disk" {
				require.Greater(t, r.Cuts(), uint64(c.Rounds/8))
				require.Greater(t, r.Changes(), c.Rounds)
			}
			var counts strings.Builder
			require.NoError(t, r.WriteText(&counts))
			t.Log(counts.String())
		})
	}
}
