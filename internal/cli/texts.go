package cli

import (
	"regexp"
	"strings"
)

// Texts are the words of a program's help: see Program.
type Texts struct {
	Description              string
	Helps, Examples, Details map[string]string
}

// ParseTexts reads texts from a file that is a part of the program. A line "== KIND NAME" begins one of a kind:
// description, help, detail or example. Lines up to an empty one are a paragraph; those of examples stay lines, and
// so do lines that begin with a space. It panics if the file has two of a name.
func ParseTexts(file string) *Texts {
	t := &Texts{Helps: map[string]string{}, Examples: map[string]string{}, Details: map[string]string{}}
	_, file, _ = strings.Cut(file, "\n== ")
	for section := range strings.SplitSeq(file, "\n== ") {
		head, lines, _ := strings.Cut(section, "\n")
		kind, name, _ := strings.Cut(head, " ")
		lines = strings.TrimSpace(lines)
		paragraphs := strings.Split(lines, "\n\n")
		for i, p := range paragraphs {
			paragraphs[i] = unindented.ReplaceAllString(p, " $1")
		}
		text := strings.Join(paragraphs, "\n\n")
		switch kind {
		case "description":
			t.Description = text
		case "help":
			add(t.Helps, name, text)
		case "detail":
			add(t.Details, name, text)
		case "example":
			add(t.Examples, name, lines)
		default:
			panic("cli: texts have no kind " + kind)
		}
	}
	return t
}

// unindented is the end of a line, and the first letter of one that continues it.
var unindented = regexp.MustCompile(`\n([^ ])`)

func add(texts map[string]string, name, text string) {
	if _, known := texts[name]; known {
		panic("cli: there are two texts of " + name)
	}
	texts[name] = text
}
