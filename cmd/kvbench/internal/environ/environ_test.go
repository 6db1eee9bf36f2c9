package environ

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCaptureDescribesThisProcess(t *testing.T) {
	e := Capture([]string{"kvbench", "readamp"}, t.TempDir())
	require.Equal(t, []string{"kvbench", "readamp"}, e.Argv)
	require.Equal(t, runtime.Version(), e.GoVersion)
	require.Positive(t, e.GOMAXPROCS)
	require.Positive(t, e.Cores)
	require.NotNil(t, e.Warnings, "an empty list, not null, in JSON")
	if runtime.GOOS == "linux" {
		require.Greater(t, e.RAMBytes, int64(1<<20))
		require.NotEmpty(t, e.Kernel)
		require.NotEmpty(t, e.Filesystem)
	}
	require.Contains(t, e.String(), e.GoVersion)
	require.NotContains(t, e.String(), "·  ·")
}

func TestWarnings(t *testing.T) {
	calm := Environment{Filesystem: "ext4", Load1: 0.5, GOMAXPROCS: 2}
	require.Empty(t, calm.warnings())
	for want, e := range map[string]Environment{
		"tmpfs":        {Filesystem: "tmpfs", Dir: "/dev/shm", GOMAXPROCS: 2},
		"-race":        {Race: true, GOMAXPROCS: 2},
		"load average": {Load1: 0.51, GOMAXPROCS: 2},
		"GOMAXPROCS":   {GOMAXPROCS: 1},
	} {
		w := e.warnings()
		require.Len(t, w, 1, want)
		require.Contains(t, w[0], want)
	}
}

func TestVersionIsOneLine(t *testing.T) {
	require.True(t, strings.HasPrefix(Version(), "kvbench "))
	require.NotContains(t, Version(), "\n")
}
