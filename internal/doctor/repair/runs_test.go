package repair

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv"
	"github.com/stretchr/testify/require"
)

// The sorted runs of a level keep their order: as the manifest has it, around a table
// that had to be written anew, and by sequence numbers if there is no manifest.
func TestRunsKeepTheirOrder(t *testing.T) {
	for _, c := range []struct {
		lost, levels string
		salvaged     bool
	}{{"", "manifest", true}, {"CURRENT", "manifest", false}, {"manifest", "sequence numbers", false}} {
		dir := filepath.Join(t.TempDir(), "store")
		db, err := kv.Open(dir, &kv.Options{Compaction: kv.Tiered, RunsPerLevel: 10, L0CompactionThreshold: 2,
			MaxConcurrentCompactions: 2})
		require.NoError(t, err)
		want := map[string]string{}
		set := func(k, v string) {
			require.NoError(t, db.Set([]byte(k), []byte(v), nil))
			want[k] = v
		}
		for i := 0; db.Metrics().Levels[1].Runs < 4; i++ {
			require.Less(t, i, 10_000, "level 1 has no runs")
			set("key000", fmt.Sprint("all ", i))
			set(fmt.Sprintf("key%03d", 1+i%200), fmt.Sprint("some ", i))
			set("key299", fmt.Sprint("all ", i))
			require.NoError(t, db.Flush(t.Context()))
		}
		require.NoError(t, db.Close())
		switch c.lost {
		case "CURRENT":
			require.NoError(t, os.Remove(filepath.Join(dir, c.lost)))
		case "manifest":
			for _, name := range filesOf(t, dir, manifest.FileManifest) {
				require.NoError(t, os.Remove(name))
			}
		}
		if c.salvaged {
			name := filesOf(t, dir, manifest.FileTable)[1]
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			data[len(data)-1] ^= 1 // the footer: every block can be salvaged
			require.NoError(t, os.WriteFile(name, data, 0o600))
		}
		report, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		require.Equal(t, c.levels, report.Levels, c.lost)
		if c.levels == "manifest" {
			db, err = kv.Open(dir, &kv.Options{ReadOnly: true})
			require.NoError(t, err)
			require.GreaterOrEqual(t, db.Metrics().Levels[1].Runs, 4, c.lost)
			require.NoError(t, db.Close())
		}
		require.Equal(t, want, contents(t, dir), c.lost)
	}
}
