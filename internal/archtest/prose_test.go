package archtest

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const mostWords = 35 // of a sentence

var sentenceEnd = regexp.MustCompile(`[.!?](\s+|$)`)

// TestSentencesAreShort holds the comments of what a store links, and of redisfilter, to sentences that need one
// reading.
func TestSentencesAreShort(t *testing.T) {
	files := goList(t, "-deps", "-f",
		`{{if not .Standard}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}`,
		"./kv", "./cmd/siftkv")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	walkSources(t, func(path string) {
		if strings.HasPrefix(path, "redisfilter/") && strings.HasSuffix(path, ".go") {
			files = append(files, filepath.Join(root, path))
		}
	})
	checked := 0
	for _, path := range files {
		if !strings.HasPrefix(path, root+string(filepath.Separator)) {
			continue
		}
		checked++
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, group := range file.Comments {
			for _, s := range longSentences(group.Text()) {
				t.Errorf("%s: a sentence has more than %d words: %s", positions.Position(group.Pos()), mostWords, s)
			}
		}
	}
	require.Greater(t, checked, 300, "the list is real")
}

// longSentences returns the sentences of a comment that are too long. Tables and code are none.
func longSentences(comment string) (long []string) {
	for paragraph := range strings.SplitSeq(comment, "\n\n") {
		if strings.HasPrefix(paragraph, "\t") || strings.Contains(paragraph, "\n\t") {
			continue
		}
		for _, s := range sentenceEnd.Split(paragraph, -1) {
			if len(strings.Fields(s)) > mostWords {
				long = append(long, strings.Join(strings.Fields(s), " "))
			}
		}
	}
	return long
}

func TestLongSentencesAreFound(t *testing.T) {
	short := strings.TrimSpace(strings.Repeat("word ", mostWords))
	require.Empty(t, longSentences(short+". "+short+".\n\n\tcode "+short+" more\n"))
	require.Equal(t, []string{short + " more"}, longSentences("Short.\n"+short+"\nmore. Short."))
}
