package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program pays for all that the linker cannot rule out. It keeps a function whose value is in a table that is used,
// and every method that an interface may call of all types within a type that is converted to an interface.
const (
	maxSmallProgram = 5_600_000 // bytes, stripped; 1.6 million of them are those of a program that prints a line
	maxFreshStore   = 8 << 20   // bytes of memory that the program has when its store is open
)

func TestASmallProgramIsSmall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "small.exe")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./testdata/small")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(program)
	require.NoError(t, err)
	t.Logf("%d bytes of %d", info.Size(), maxSmallProgram)
	assert.LessOrEqual(t, info.Size(), int64(maxSmallProgram))

	out, err = exec.Command(program, filepath.Join(dir, "store")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	if memory := strings.Fields(string(out)); len(memory) > 0 { // VmRSS: 5100 kB
		kib, err := strconv.Atoi(memory[1])
		require.NoError(t, err, "%s", out)
		t.Logf("%d KiB of memory of %d", kib, maxFreshStore>>10)
		assert.LessOrEqual(t, kib, maxFreshStore>>10)
	}
}
