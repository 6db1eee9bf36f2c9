package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	testName = regexp.MustCompile("`(Test[A-Z]\\w+)`")
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

// TestDocsNameTestsThatAreThere follows what the documents say is tested.
func TestDocsNameTestsThatAreThere(t *testing.T) {
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		tests.Write(data)
		return err
	}))
	names := 0
	for _, doc := range markdown(t, "../../docs") {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			names++
			if !strings.Contains(tests.String(), "func "+m[1]+"(") {
				t.Errorf("%s names %s: there is no such test", doc, m[1])
			}
		}
	}
	require.Greater(t, names, 20, "the list is real")
}

// TestEveryPromiseNamesItsTests holds that each promise of docs/durability.md names tests of the store, and that these
// are there. A name that ends with … is the beginning of some.
func TestEveryPromiseNamesItsTests(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"kv", "internal/*", "internal/storetest/*"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			tests.Write(data)
		}
	}
	page, err := os.ReadFile("../../docs/durability.md")
	require.NoError(t, err)
	names := regexp.MustCompile("`(Test\\w+)(…?)`")
	for _, m := range names.FindAllStringSubmatch(string(page), -1) {
		declared := "\nfunc " + m[1]
		if m[2] == "" {
			declared += "("
		}
		require.True(t, strings.Contains(tests.String(), declared), m[0])
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) > 2 && regexp.MustCompile(`^\| \d+$`).MatchString(cells[0]) {
			require.Regexp(t, names, cells[2], line)
			rows++
		}
	}
	require.Greater(t, rows, 5)
}

// TestTheREADMEHasTheNumbersOfThePage holds that the README's table of other stores is a part of that of
// docs/performance.md.
func TestTheREADMEHasTheNumbersOfThePage(t *testing.T) {
	mine := tableOf(t, "../../README.md", "| | Pebble | bbolt | Badger |")
	all := tableOf(t, "../../docs/performance.md", "| workload | Pebble |")
	head := all["workload"]
	require.Len(t, mine, 5)
	for row, cells := range mine {
		if row == "" {
			continue
		}
		require.Contains(t, all, row)
		for i, name := range mine[""] {
			cell := all[row][slices.Index(head, name)]
			require.Equal(t, cell, cells[i], "%s next to %s", row, name)
		}
	}
}

// tableOf returns the rows of the table of a page that begins with a head, each without its first cell, by that.
func tableOf(t *testing.T, page, head string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	_, table, found := strings.Cut("\n"+string(text), "\n"+head)
	require.True(t, found, page)
	table, _, _ = strings.Cut(head+table, "\n\n")
	rows := map[string][]string{}
	for line := range strings.Lines(table) {
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows[cells[0]] = cells[1:]
		}
	}
	return rows
}
