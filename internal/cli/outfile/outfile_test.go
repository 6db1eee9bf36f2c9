package outfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// holds asserts that a directory has the named files and no others, such as temporary
// ones.
func holds(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	require.ElementsMatch(t, names, got)
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestAFileIsReplacedWholeAndKeepsItsPermissions(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("n", 255)) // the longest name that there is
	require.NoError(t, Check(path))
	holds(t, dir)
	require.NoError(t, Write(path, text("first")))
	require.Equal(t, "first", contents(t, path))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, Check(path))
	require.NoError(t, Write(path, text("2")))
	require.Equal(t, "2", contents(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode().Perm())
	holds(t, dir, filepath.Base(path))
}

func TestAfterAnErrorTheFileIsAsItWas(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "page")
	failure := errors.New("no more")
	fail := func(w io.Writer) error { return errors.Join(text(strings.Repeat("x", 1<<20))(w), failure) }
	require.ErrorIs(t, Write(path, fail), failure)
	holds(t, dir)
	require.NoError(t, Write(path, text("old")))
	require.ErrorIs(t, Write(path, fail), failure)
	require.Equal(t, "old", contents(t, path))
	holds(t, dir, "page")
}

// What takes the place of a file that cannot be replaced is written over it, and if that
// fails it is kept.
func TestAFileThatCannotBeReplaced(t *testing.T) {
	dir := t.TempDir()
	path, by := filepath.Join(dir, "page"), filepath.Join(dir, "new")
	require.NoError(t, os.WriteFile(path, []byte("what it had is longer"), 0o600))
	require.NoError(t, os.WriteFile(by, []byte("new"), 0o600))
	require.NoError(t, overwrite(path, by))
	require.Equal(t, "new", contents(t, path))

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	err := (&target{path: path}).replace(by, "page")
	require.ErrorContains(t, err, "write page: ")
	require.ErrorContains(t, err, "what was to be written is in "+by)
	require.Equal(t, "new", contents(t, by))
}

func TestOfALinkTheTargetIsWritten(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	require.NoError(t, os.MkdirAll(deep, 0o700))
	require.NoError(t, os.Symlink(filepath.Join("a", "b"), filepath.Join(dir, "short")))
	require.NoError(t, os.Symlink("target", filepath.Join(deep, "link")))
	require.NoError(t, os.Symlink("short/../up", filepath.Join(dir, "crooked")))
	for link, target := range map[string]string{
		filepath.Join(dir, "short", "link"): filepath.Join(deep, "target"),
		filepath.Join(dir, "crooked"):       filepath.Join(dir, "a", "up"),
	} {
		for _, s := range []string{"new", "replaced"} {
			require.NoError(t, Check(link))
			require.NoError(t, Write(link, text(s)))
			require.Equal(t, s, contents(t, target))
			info, err := os.Lstat(link)
			require.NoError(t, err)
			require.Equal(t, fs.ModeSymlink, info.Mode().Type())
		}
	}
	holds(t, dir, "a", "short", "crooked")
	holds(t, deep, "link", "target")

	circle := filepath.Join(dir, "circle")
	require.NoError(t, os.Symlink("circle", circle))
	require.Error(t, Check(circle))
	require.Error(t, Write(circle, text("x")))
}

func TestAPipeIsWrittenThrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	clitest.NamedPipe(t, path)
	require.NoError(t, Check(path), "nobody reads yet")
	read := make(chan string)
	go func() {
		data, err := os.ReadFile(path)
		read <- string(data) + errorText(err)
	}()
	require.NoError(t, Write(path, text("through")))
	require.Equal(t, "through", <-read)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.ModeNamedPipe, info.Mode().Type())
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestADeviceIsWrittenThrough(t *testing.T) {
	require.NoError(t, Check(os.DevNull))
	require.NoError(t, Write(os.DevNull, text("gone")))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeDevice)
}

func TestADeletedFileThatIsOpenIsWrittenThrough(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "gone"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		require.NoError(t, Write(f.Name(), text("no /proc here")))
		t.Skip("there is no /proc, which lends a deleted file a name")
	}
	require.NoError(t, os.Remove(f.Name()))
	require.NoError(t, Write(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), text("kept")))
	holds(t, dir)
	b := make([]byte, 4)
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.Equal(t, "kept", string(b))
}

func TestWhatCannotBeWrittenIsSaidBefore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	for path, want := range map[string]error{
		dir:                              syscall.EISDIR,
		filepath.Join(dir, "no", "x"):    fs.ErrNotExist,
		filepath.Join(file, "x"):         syscall.ENOTDIR,
		filepath.Join(dir, "no") + "/./": fs.ErrNotExist,
	} {
		for name, err := range map[string]error{"check": Check(path), "write": Write(path, text("x"))} {
			require.ErrorIs(t, err, want, "%s %s", name, path)
			require.Contains(t, err.Error(), path)
			require.NotContains(t, err.Error(), ".tmp")
		}
	}
	holds(t, dir, "file")
	require.Equal(t, "x", contents(t, file))
}
