//go:build unix

package objstore

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// umask is that of the process. To ask for it is to change it: no test may run meanwhile.
var umask = func() fs.FileMode {
	m := syscall.Umask(0)
	syscall.Umask(m)
	return fs.FileMode(m)
}()

// What is stored in a directory is its owner's, unless the client was opened with another mode: objects may be the
// files of a store of which nobody else reads the local ones.
func TestModesOfObjectsInADirectory(t *testing.T) {
	byDefault := func(name string) (Store, error) { return OpenDir(name) }
	for name, c := range map[string]struct {
		open      func(name string) (Store, error)
		file, dir fs.FileMode
	}{
		"by default":    {byDefault, 0o600, 0o700},
		"for the group": {func(name string) (Store, error) { return OpenDirMode(name, 0o640) }, 0o640, 0o750},
		"for writers":   {func(name string) (Store, error) { return OpenDirMode(name, 0o660) }, 0o660, 0o770},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "new", "objects")
			s, err := c.open(root)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			require.NoError(t, s.PutIfAbsent(t.Context(), "a/b/absent", []byte("1")))
			require.NoError(t, s.Put(t.Context(), "a/c/put", bytes.NewReader([]byte("22")), 2))
			require.Equal(t, map[fs.FileMode]int{c.file &^ umask: 2, fs.ModeDir | c.dir&^umask: 6},
				modesIn(t, filepath.Dir(root)))
		})
	}
}

// modesIn returns how many files and directories have which mode, the directory itself among them.
func modesIn(t *testing.T, dir string) map[fs.FileMode]int {
	modes := map[fs.FileMode]int{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		modes[info.Mode()]++
		return nil
	}))
	return modes
}

func TestOpenDirRefusesModes(t *testing.T) {
	for _, mode := range []fs.FileMode{0, 0o400, 0o200, 0o066, fs.ModeDir | 0o700, fs.ModeSetuid | 0o600} {
		_, err := OpenDirMode(filepath.Join(t.TempDir(), "d"), mode)
		require.ErrorContains(t, err, "want permissions with 0600 among them", "%v", mode)
	}
}
