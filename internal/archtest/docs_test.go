package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	goFile   = regexp.MustCompile("`((?:kv|internal|filterpolicy|sstable|blockindex|objstore|cmd)/[\\w/.-]+\\.go)`")
	function = regexp.MustCompile("`(\\w+)\\.(\\w+)`, `([\\w/.-]+\\.go)`")
)

// TestDocsNameFilesThatAreThere follows what the documents say about where code is.
func TestDocsNameFilesThatAreThere(t *testing.T) {
	files := 0
	for _, doc := range markdown(t, "../../docs") {
		if strings.Contains(doc, "/adr/") {
			continue
		}
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, m := range goFile.FindAllStringSubmatch(string(text), -1) {
			files++
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s names %s: %v", doc, m[1], err)
			}
		}
	}
	require.Greater(t, files, 50, "the list is real")
}

// TestTheTourNamesFunctionsThatAreThere follows docs/tour.md.
func TestTheTourNamesFunctionsThatAreThere(t *testing.T) {
	text, err := os.ReadFile("../../docs/tour.md")
	require.NoError(t, err)
	steps := function.FindAllStringSubmatch(string(text), -1)
	require.Len(t, steps, 20)
	for _, m := range steps {
		source, err := os.ReadFile(filepath.Join("../..", m[3]))
		require.NoError(t, err)
		declared := regexp.MustCompile(`(?m)^func \(\w+ \*?` + m[1] + `\) ` + m[2] + `\(`)
		require.Regexp(t, declared, string(source), strings.Join(m[1:], " "))
	}
}
