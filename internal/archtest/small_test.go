package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program pays for all that the linker cannot rule out. It keeps a function whose value is in a table that is used,
// and every method that an interface may call of all types within a type that is converted to an interface.
const (
	maxSmallProgram = 5_490_000 // bytes, stripped, on linux/amd64; a program that prints a line has 1.6 million of them
	maxFreshStore   = 4 << 20   // bytes of memory without mapped files that the program has when its store is open
)

func TestASmallProgramIsSmall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "small.exe")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program,
		"./testdata/small")
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "GOAMD64=v1", "CGO_ENABLED=0",
		"GOEXPERIMENT=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(program)
	require.NoError(t, err)
	t.Logf("%d bytes of %d", info.Size(), maxSmallProgram)
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		assert.LessOrEqual(t, info.Size(), int64(maxSmallProgram))
	}

	run := exec.Command(program, filepath.Join(dir, "store"))
	run.Env = append(os.Environ(), "GOMAXPROCS=2", "GOGC=100", "GODEBUG=") // each processor has memory of its own
	out, err = run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	if memory := strings.Fields(string(out)); len(memory) > 0 && !largePages() { // RssAnon: 980 kB
		kib, err := strconv.Atoi(memory[1])
		require.NoError(t, err, "%s", out)
		t.Logf("%d KiB of memory of %d", kib, maxFreshStore>>10)
		assert.LessOrEqual(t, kib, maxFreshStore>>10)
	}
}

// largePages reports whether the system gives a program more memory at once than it touches.
func largePages() bool {
	huge, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled") // there is none without huge pages
	return os.Getpagesize() > 4096 || strings.Contains(string(huge), "[always]")
}
