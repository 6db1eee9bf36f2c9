package siftbleve

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A document is what tests index: a file of the Go source tree, or a word.
type document struct {
	ID      string `json:"-"`
	Package string `json:"package"`
	Text    string `json:"text"`
	Lines   int    `json:"lines"`
}

// goSources returns the Go files below some directories of GOROOT/src; of all of it if there are none.
func goSources(t testing.TB, dirs ...string) (docs []document) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	for _, dir := range dirs {
		err := fs.WalkDir(os.DirFS(src), dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			text, err := os.ReadFile(filepath.Join(src, path))
			docs = append(docs, document{path, filepath.ToSlash(filepath.Dir(path)), string(text),
				strings.Count(string(text), "\n")})
			return err
		})
		require.NoError(t, err)
	}
	return docs
}

// words returns the lines of Debian's word list, a document each.
func words(t testing.TB) (docs []document) {
	f, err := os.Open("/usr/share/dict/words")
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		docs = append(docs, document{fmt.Sprintf("%06d", len(docs)), "words", lines.Text(), len(lines.Text())})
	}
	require.NoError(t, lines.Err())
	return docs
}
