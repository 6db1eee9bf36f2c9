package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const screenWidth = 120 // columns, four for a tab

// TestLinesFitOnAScreen holds every Go file of the tree to a width, and its properties to draws that repeat.
func TestLinesFitOnAScreen(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && e.Name() != "..":
			return filepath.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		files++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !strings.Contains(path, "internal/property/") && bytes.Contains(data, []byte("rapid."+"Check(")) {
			t.Errorf("%s checks by chance: use internal/property, whose draws are the same each time", path)
		}
		n := 0
		for line := range bytes.Lines(data) {
			n++
			line = bytes.ReplaceAll(bytes.TrimRight(line, "\r\n"), []byte("\t"), []byte("    "))
			if w := utf8.RuneCount(line); w > screenWidth {
				t.Errorf("%s:%d has %d columns: want at most %d", path, n, w, screenWidth)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 300, "the walk found the files")
}
