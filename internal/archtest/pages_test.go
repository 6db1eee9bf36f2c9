package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	maxPageWords     = 2_500 // of one page of docs
	maxDecisionWords = 600
	maxDocsWords     = 35_000 // of all pages of docs, except format and decisions
	maxSentenceWords = 32
	maxMeanWords     = 16 // of the sentences of a page
)

// promise is what the first paragraph of a page makes to its reader.
var promise = regexp.MustCompile(`\byou\s+(can|know)\b`)

// retired are words of a private language, and constructions that STYLE.md replaces.
var retired = regexp.MustCompile(`(?i)\b(anew|whoever|nobody|somebody|but for|all but|so many|beside|victims?` +
	`|is said to|what is asked for|from [\d.,]+ \w+ on` +
	`|(lies?|lay|lying|values?|set) apart|(is|are) to be)\b`)

// TestPagesAreEasyToRead holds the pages of docs to their length and to sentences that need one reading.
func TestPagesAreEasyToRead(t *testing.T) {
	all := 0
	for _, path := range markdown(t, "../../docs", "../../README.md", "../../CHANGELOG.md") {
		name := filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "..")+string(filepath.Separator)))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		text := string(data)
		faults := faultsOf(text)
		n, decision := len(strings.Fields(text)), strings.HasPrefix(name, "docs/adr/")
		if decision && n > maxDecisionWords || n > maxPageWords {
			faults = append(faults, "the page is too long")
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(text, strings.SplitAfterN(text, "\n\n", 2)[0]), "\n\n")
		if strings.HasPrefix(name, "docs/") && !decision && !promise.MatchString(first) {
			faults = append(faults, "the first paragraph does not say what you can do, or know, after reading")
		}
		if strings.HasPrefix(name, "docs/") && !strings.HasPrefix(name, "docs/format") && !decision {
			all += n
		}
		for _, f := range faults {
			t.Errorf("%s: %s", name, f)
		}
	}
	t.Logf("docs: %d words of %d", all, maxDocsWords)
	assert.LessOrEqual(t, all, maxDocsWords, "words of docs")
}

// TestTextsOfProgramsHaveNoRetiredWords holds the help of programs, and the words of the laboratory's reports, to the
// words of pages.
func TestTextsOfProgramsHaveNoRetiredWords(t *testing.T) {
	checked := 0
	walkSources(t, func(path string) {
		table := filepath.Ext(path) == ".yaml" && strings.HasPrefix(path, laboratoryModule)
		if filepath.Base(path) != "texts.txt" && !table {
			return
		}
		data, err := os.ReadFile(filepath.Join("../..", path))
		require.NoError(t, err)
		checked++
		text := strings.Join(strings.Fields(string(data)), " ")
		assert.Empty(t, retired.FindAllString(text, -1), "%s: write words of the field", path)
	})
	require.Greater(t, checked, 5, "the walk found the texts")
}

// victim is the field's word for the fingerprint that a full cuckoo filter has no slot for.
var victim = regexp.MustCompile(`(?i)\bvictims?\b`)

// TestMessagesHaveNoRetiredWords holds what programs and packages say to the words of pages.
func TestMessagesHaveNoRetiredWords(t *testing.T) {
	checked := 0
	walkSources(t, func(path string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, filepath.Join("../..", path), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				checked++
				word := retired.FindString(victim.ReplaceAllString(text.Value, ""))
				assert.Empty(t, word, "%s: %s: write words of the field", positions.Position(text.Pos()), text.Value)
			}
			return true
		})
	})
	require.Greater(t, checked, 5000, "the walk found the messages")
}

// faultsOf returns the rules that a page breaks, except those of its length.
func faultsOf(page string) (faults []string) {
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\r\n")
		table, code := strings.HasPrefix(line, "|"), strings.HasPrefix(line, "    ")
		if !table && !code && utf8.RuneCountInString(line) > screenWidth {
			faults = append(faults, "a line is too wide: "+line)
		}
	}
	sentences, words := 0, 0
	for _, p := range paragraphs(page) {
		for s := range strings.SplitSeq(sentenceStop.ReplaceAllString(p.text, "$1\x00"), "\x00") {
			n := countWords(s)
			if n == 0 {
				continue
			}
			if !p.cell {
				sentences, words = sentences+1, words+n
			}
			if n > maxSentenceWords {
				faults = append(faults, "a sentence is too long: "+s)
			}
		}
		if word := retired.FindString(p.text); word != "" {
			faults = append(faults, "instead of "+word+" write a word of the field: "+p.text)
		}
	}
	if words > maxMeanWords*sentences {
		faults = append(faults, "the mean sentence is too long")
	}
	return faults
}

// A paragraph is running text: a paragraph, an item of a list, or a cell of a table.
type paragraph struct {
	text string
	cell bool
}

var (
	sentenceStop = regexp.MustCompile(`([.!?][)*"]*)\s+`)
	inlineCode   = regexp.MustCompile("`[^`]*`")
	codeOfLine   = regexp.MustCompile("`[^`\n]*`")
	link         = regexp.MustCompile(`!?\[([^\]]*)\]\(([^)\s]*)\)`)
	listItem     = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
)

// paragraphs returns the running text of a page. A piece of code in it is one word, a block of code is left out.
func paragraphs(page string) (all []paragraph) {
	var text []string
	end := func() {
		if len(text) > 0 {
			p := link.ReplaceAllString(inlineCode.ReplaceAllString(strings.Join(text, " "), "code"), "$1")
			all, text = append(all, paragraph{text: p}), nil
		}
	}
	fenced, inList := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		item := listItem.MatchString(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			end()
			fenced = !fenced
		case fenced:
		case trimmed == "":
			end()
		case strings.HasPrefix(line, "#"):
			end()
			inList = false
		case strings.HasPrefix(line, "|"):
			end()
			for cell := range strings.SplitSeq(inlineCode.ReplaceAllString(line, "code"), "|") {
				all = append(all, paragraph{text: link.ReplaceAllString(strings.TrimSpace(cell), "$1"), cell: true})
			}
		case strings.HasPrefix(line, "    ") && len(text) == 0 && !inList && !item:
			// Code that is indented.
		default:
			if item {
				end()
				line = listItem.ReplaceAllString(line, "")
			}
			inList = item || inList && strings.HasPrefix(line, " ")
			text = append(text, strings.TrimSpace(line))
		}
	}
	end()
	return all
}

// countWords counts what has a letter or a digit.
func countWords(s string) (n int) {
	for word := range strings.FieldsSeq(s) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

func TestFaultsOfPagesAreFound(t *testing.T) {
	short := strings.TrimSpace(strings.Repeat("word ", maxMeanWords))
	require.Empty(t, faultsOf("# Head\n\n"+short+".\n\n    code "+short+short+short+"\n\n- "+short+".\n  "+short+"\n"))
	require.Equal(t, []string{"the mean sentence is too long"}, faultsOf(short+"\nmore.\n"))
	require.Len(t, faultsOf("[short]("+strings.Repeat("x", screenWidth)+")\n"), 1)
	long := short + " " + short + " [more](x.md)"
	require.Len(t, faultsOf("| a | "+long+" |\n"), 1)
	require.Len(t, faultsOf("```\n"+short+" "+short+short+"\n```\n\nValues lie apart. `whoever` is code.\n"), 2)
}

// TestGoBlocksAreCodeThatCompiles holds that each block of Go in docs and README is a part of a Go file of the tree.
func TestGoBlocksAreCodeThatCompiles(t *testing.T) {
	var code strings.Builder
	require.NoError(t, filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		data, err := os.ReadFile(path)
		code.WriteString(withoutIndent(string(data)))
		return err
	}))
	blocks := 0
	for _, path := range markdown(t, "../../docs", "../../README.md") {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range goBlock.FindAllStringSubmatch(string(data), -1) {
			blocks++
			if !strings.Contains(code.String(), "\n"+withoutIndent(m[1])) {
				t.Errorf("%s: no Go file has this code:\n%s", path, m[1])
			}
		}
	}
	require.GreaterOrEqual(t, blocks, 3, "the list is real")
}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// withoutIndent returns a text whose lines begin with what is no space.
func withoutIndent(text string) string {
	var all strings.Builder
	for line := range strings.Lines(text) {
		all.WriteString(strings.TrimSpace(line) + "\n")
	}
	return all.String()
}

// TestLinksLeadSomewhere holds that each link of a page to a file or a heading of the tree leads there.
func TestLinksLeadSomewhere(t *testing.T) {
	checked := 0
	for _, path := range markdown(t, "../..") {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, target := range linksOf(string(data)) {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(target, "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: there is no such file", path, target)
			} else if anchor != "" && !slices.Contains(anchorsOf(t, to), anchor) {
				t.Errorf("%s links to %s: there is no such heading", path, target)
			}
		}
	}
	require.Greater(t, checked, 150, "the list is real")
}

// linksOf returns the targets of a page's links.
func linksOf(page string) (targets []string) {
	var text strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced {
			text.WriteString(codeOfLine.ReplaceAllString(line, "code"))
		}
	}
	for _, m := range link.FindAllStringSubmatch(text.String(), -1) {
		targets = append(targets, m[2])
	}
	return targets
}

// anchorsOf returns the names of a page's headings, as GitHub makes them.
func anchorsOf(t *testing.T, path string) (names []string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		heading := strings.TrimSpace(strings.TrimLeft(link.ReplaceAllString(line, "$1"), "#"))
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, heading))
	}
	return names
}

// markdown returns the pages below the places, which are folders or pages.
func markdown(t *testing.T, places ...string) (pages []string) {
	for _, place := range places {
		require.NoError(t, filepath.WalkDir(place, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != place:
				return filepath.SkipDir
			case !e.IsDir() && filepath.Ext(path) == ".md":
				pages = append(pages, path)
			}
			return nil
		}))
	}
	return pages
}
