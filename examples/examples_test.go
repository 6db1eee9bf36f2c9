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
	for _, output := range outputs {
		name := filepath.Dir(output)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(programs, name+".exe")
			built, err := exec.Command("go", "build", "-o", program, "./"+name).CombinedOutput()
			require.NoError(t, err, string(built))
			want, err := os.ReadFile(output)
			require.NoError(t, err)
			run := exec.Command(program, t.TempDir())
			run.Stderr = t.Output()
			got, err := run.Output()
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		})
	}
}
