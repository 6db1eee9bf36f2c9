//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is a user who owns nothing.
const nobody = 65534

// A file of the store that this user may not read is an error. That it may be moved all
// the same, since the directory is the user's, makes no difference.
func TestAFileOfAnotherUserIsAnError(t *testing.T) {
	program := built(t)
	top := filepath.Dir(program)
	for _, name := range []string{"CURRENT", "MANIFEST-000016", "000011.sst", "000018.wal", "."} {
		dir, out := filepath.Join(top, "store"), filepath.Join(top, "out")
		require.NoError(t, os.CopyFS(dir, os.DirFS(goldenStore(t))))
		before := filesUnder(t, top)
		restore, credential := withhold(t, top, dir, filepath.Join(dir, name))
		for _, args := range [][]string{
			{"verify", dir}, {"verify", dir, "--json"}, {"stats", dir}, {"repair", dir, "--dry-run"}, {"repair", dir}, {"repair", dir, "--out", out},
		} {
			cmd := exec.CommandContext(t.Context(), program, args...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
			status, stdout, stderr := ran(t, cmd)
			what := fmt.Sprintf("%s of a store whose %s may not be read: %s%s", args[0], name, stdout, stderr)
			require.Equal(t, statusError, status, what)
			require.Contains(t, stderr, "permission denied", what)
			require.NotRegexp(t, "(?i)damage|corrupt", stdout+stderr, what)
		}
		restore()
		require.Equal(t, before, filesUnder(t, top), "something was changed")
		status, _, stderr := ran(t, exec.CommandContext(t.Context(), program, "verify", dir))
		require.Zero(t, status, stderr)
		require.NoError(t, os.RemoveAll(dir))
	}
}

// withhold makes dir and what is in it a user's who may not read one of the files. Root
// may read all: then the user is another, and top is theirs too.
func withhold(t *testing.T, top, dir, file string) (restore func(), user *syscall.Credential) {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	restore = func() { require.NoError(t, os.Chmod(file, info.Mode().Perm())) }
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(file, 0))
		return restore, nil
	}
	require.NoError(t, os.Chown(top, nobody, nobody))
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == file {
			return err
		}
		return os.Chown(path, nobody, nobody)
	}))
	require.NoError(t, os.Chmod(file, info.Mode().Perm()&0o700))
	return restore, &syscall.Credential{Uid: nobody, Gid: nobody}
}
