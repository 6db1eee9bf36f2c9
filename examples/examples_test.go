package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachProgramPrintsWhatItSays(t *testing.T) {
	outputs, err := filepath.Glob("*/output.txt")
	require.NoError(t, err)
	require.Len(t, outputs, 6)
	programs := t.TempDir()
	build := []string{"build", "-ldflags=-w", "-o", programs + string(filepath.Separator)}
	for _, output := range outputs {
		build = append(build, "./"+filepath.Dir(output))
	}
	built, err := exec.Command("go", build...).CombinedOutput()
	require.NoError(t, err, string(built))
	for _, output := range outputs {
		name := filepath.Dir(output)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(output)
			require.NoError(t, err)
			run := exec.Command(filepath.Join(programs, name), t.TempDir())
			run.Stderr = t.Output()
			got, err := run.Output()
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		})
	}
}
