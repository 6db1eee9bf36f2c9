package clitest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// CommandLines returns the command lines of a program in the blocks of code of the project's pages, by page. It leaves
// out those with a word in capitals, or a field, in place of the command.
func CommandLines(t testing.TB, program string) map[string][][]string {
	root := "."
	for {
		if _, err := os.Stat(filepath.Join(root, "CHANGELOG.md")); err == nil {
			break
		}
		root = filepath.Join(root, "..")
		require.Less(t, len(root), 64, "the project has a CHANGELOG.md")
	}
	lines := map[string][][]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != root:
			return filepath.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range codeLines(string(page)) {
			if argv := commandLine(line, program); argv != nil {
				lines[path] = append(lines[path], argv)
			}
		}
		return nil
	}))
	return lines
}

// RequireExamples asserts that the help of each command of a program has examples, and that they are command lines.
func RequireExamples(t *testing.T, program string, commands []*kong.Node, parses func(argv []string) error) {
	t.Helper()
	for _, n := range commands {
		_, examples, _ := strings.Cut(n.Detail, "Examples:\n")
		found := 0
		for line := range strings.Lines(examples) {
			if argv := commandLine(strings.TrimSpace(line), program); argv != nil {
				found++
				require.NoError(t, parses(argv), "%q", argv)
			}
		}
		require.Positive(t, found, "%s has examples", n.FullPath())
	}
}

// codeLines returns the lines of a page's blocks of code. One that a backslash continues is one line with the next.
func codeLines(page string) (lines []string) {
	fenced := false
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", " ")) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if fenced || strings.HasPrefix(line, "    ") {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		}
	}
	return lines
}

// commandLine returns the words of a line of the shell that runs the program, nil if it does not.
func commandLine(line, program string) []string {
	argv := words(line)
	if len(argv) > 2 && argv[0] == "go" && argv[1] == "run" {
		argv = append([]string{filepath.Base(argv[2])}, argv[3:]...)
	}
	if len(argv) < 2 || argv[0] != program || argv[1] == strings.ToUpper(argv[1]) ||
		strings.Contains(argv[1], "=") {
		return nil
	}
	return argv
}

// words splits a line into the words of its first command, without quotation marks and a comment.
func words(line string) (all []string) {
	var word strings.Builder
	quote, inWord := rune(0), false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' && inWord:
			all = append(all, word.String())
			word.Reset()
			inWord = false
		case r == ' ':
		case strings.ContainsRune("#|;&<>()", r) && !inWord:
			return all
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	return all
}
