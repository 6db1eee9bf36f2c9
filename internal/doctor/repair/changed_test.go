package repair

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A repair does with the files what the survey found of them. A writer that has come and
// gone since, before the repair took the store's lock, has left others.
func TestAWriterThatCameBehindTheSurveyEndsTheRepair(t *testing.T) {
	for name, o := range map[string]Options{"in place": {}, "into another directory": {Out: "out"},
		"dry run": {DryRun: true}} {
		t.Run(name, func(t *testing.T) {
			dir, _ := damagedStore(t)
			if o.Out != "" {
				o.Out = filepath.Join(t.TempDir(), o.Out)
			}
			var after map[string]string
			o.Progress = func(phase string, done, total int) {
				if phase != "logs" || done < total {
					return
				}
				// The survey still has the lock, so that what a writer leaves is put there.
				require.NoError(t, os.WriteFile(filepath.Join(dir, "999999.wal"), nil, 0o600))
				after = snapshotDir(t, dir)
			}
			_, err := Run(t.Context(), dir, o)
			require.ErrorContains(t, err, "have changed meanwhile")
			require.Equal(t, after, snapshotDir(t, dir))
			if o.Out != "" {
				require.NoDirExists(t, o.Out)
			}
			o.Progress = nil
			_, err = Run(t.Context(), dir, o)
			require.NoError(t, err)
		})
	}
}
