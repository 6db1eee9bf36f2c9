package storecmd

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDemoHasSomethingToSee(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	require.Contains(t, ok(t, "demo", dir), "siftkv scan "+dir+" --prefix user/")
	ok(t, "verify", dir)
	require.Equal(t, "19991\n", ok(t, "scan", dir, "--prefix", "user/", "--count"), "ten are deleted, one was added")
	require.Equal(t, "150\n", ok(t, "scan", dir, "--prefix", "photo/", "--count"))
	require.Equal(t, "1000\n", ok(t, "scan", dir, "--prefix", "session/", "--count"))
	require.Equal(t, "in the log only\n", ok(t, "get", dir, "user/latest"))
	require.Regexp(t, `(?s)L0 .*L6 .*blob files`, ok(t, "stats", dir))
	for _, args := range [][]string{{"demo", dir}, {"demo", "dir://" + dir}} {
		status, _, stderr := siftkv(t, args...)
		require.Equal(t, statusUsage, status, stderr)
	}
}
