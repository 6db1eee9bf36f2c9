package storecmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
)

// A file of the store that this user may not read is an error. That it may be moved all
// the same, since the directory is the user's, makes no difference.
func TestAFileOfAnotherUserIsAnError(t *testing.T) {
	t.Parallel()
	top := clitest.PublicDir(t)
	for _, name := range []string{"CURRENT", "MANIFEST-000016", "000011.sst", "000018.wal", "."} {
		dir, out := filepath.Join(top, "store"), filepath.Join(top, "out")
		require.NoError(t, os.CopyFS(dir, os.DirFS(goldenStore(t))))
		before := filesUnder(t, top)
		restore := withhold(t, top, dir, filepath.Join(dir, name))
		for _, args := range [][]string{
			{"verify", dir}, {"verify", dir, "--json"}, {"stats", dir}, {"repair", dir, "--dry-run"}, {"repair", dir},
			{"repair", dir, "--out", out},
		} {
			r := (&clitest.Process{Args: args, Nobody: true}).Run(t)
			what := fmt.Sprintf("%s of a store whose %s may not be read: %s%s", args[0], name, r.Stdout, r.Stderr)
			require.Equal(t, statusError, r.Status, what)
			require.Contains(t, r.Stderr, "permission denied", what)
			told := strings.ReplaceAll(r.Stdout+r.Stderr, `"damage": []`, "")
			require.NotRegexp(t, "(?i)damage|corrupt", told, what)
		}
		restore()
		require.Equal(t, before, filesUnder(t, top), "something was changed")
		works(t, "verify", dir)
		require.NoError(t, os.RemoveAll(dir))
	}
}

// withhold makes dir and what is in it a user's who may not read one of the files. Root
// may read all: then the user is another, and top is theirs too.
func withhold(t *testing.T, top, dir, file string) (restore func()) {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	restore = func() { require.NoError(t, os.Chmod(file, info.Mode().Perm())) }
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(file, 0))
		return restore
	}
	require.NoError(t, os.Chown(top, clitest.NobodyID, clitest.NobodyID))
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == file {
			return err
		}
		return os.Chown(path, clitest.NobodyID, clitest.NobodyID)
	}))
	require.NoError(t, os.Chmod(file, info.Mode().Perm()&0o700))
	return restore
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
