package sweep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheSpecsOfTheStudy holds that the specifications beside docs/study.md can be run,
// and that they make the cells which it says.
func TestTheSpecsOfTheStudy(t *testing.T) {
	specs := map[string]int{
		"quick": 29, "bits": 42, "keys": 96, "levels": 37, "budget": 24, "young": 45, "luck": 160, "repeats": 21,
		"small": 30, "seeds": 36, "ranges": 171, "large-values": 28,
	}
	dir, err := filepath.Abs("../../../../docs/study")
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(specs))

	// The key sets are made where the study is run; here others take their place.
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("study-keys", 0o700))
	for _, name := range []string{"words", "packages", "urls"} {
		require.NoError(t, os.WriteFile("study-keys/"+name+".txt", []byte(name+"\na\nb\n"), 0o600))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		spec, err := ReadSpec(file)
		require.NoError(t, err)
		require.Equal(t, name, spec.Name)
		require.NotEmpty(t, spec.About, name)
		plan, err := spec.Plan()
		require.NoError(t, err, name)
		require.Len(t, plan.Cells, specs[name], name)
		require.Empty(t, plan.Skipped, "%s has combinations that no engine has", name)
	}
}
