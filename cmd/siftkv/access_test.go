package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// built builds the program, where every user may run it.
func built(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != filepath.Clean(os.TempDir()) && filepath.Dir(d) != d; d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o755)) //nolint:gosec // so that another user can run it
	}
	path := filepath.Join(dir, "siftkv")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// ran runs a process to its end.
func ran(t *testing.T, cmd *exec.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil {
		_, ended := errors.AsType[*exec.ExitError](err)
		require.True(t, ended, "%v", err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// filesUnder returns all files under a directory with their bytes. A lock file is
// nothing: it stays behind.
func filesUnder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOCK" {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	}))
	return files
}
