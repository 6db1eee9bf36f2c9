package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// firstSentence matches the end of a first sentence.
var firstSentence = regexp.MustCompile(`\.\s+`)

// Man writes the page of a program for section 1 of the manual, from what --help says of it and of its commands.
func Man(w io.Writer, app *kong.Kong) error {
	name := app.Model.Name
	about, rest := app.Model.Help, ""
	if end := firstSentence.FindStringIndex(about); end != nil {
		about, rest = about[:end[0]], about[end[1]:]
	}
	var out strings.Builder
	fmt.Fprintf(&out, ".TH %s 1 \"\" \"%s\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", strings.ToUpper(name),
		manLine(Version(name)), name, manText(strings.TrimSuffix(about, ".")))
	fmt.Fprintf(&out, ".B %s\n%s\n", name, manText(strings.TrimPrefix(app.Model.Summary(), name)))
	fmt.Fprintf(&out, ".SH DESCRIPTION\n%s\n.SH OPTIONS\n", manText(rest))
	manFlags(&out, app.Model.Flags)
	if len(app.Model.Children) > 0 {
		out.WriteString(".SH COMMANDS\n")
	}
	offered(app, func(n *kong.Node) {
		if n.Parent == nil || len(n.Children) > 0 {
			return
		}
		fmt.Fprintf(&out, ".SS %s\n%s\n", manText(name+" "+pathOf(n)), manText(n.Help))
		if n.Detail != "" {
			fmt.Fprintf(&out, ".PP\n%s\n", manText(n.Detail))
		}
		for _, arg := range n.Positional {
			fmt.Fprintf(&out, ".TP\n.I %s\n%s\n", manText(arg.Summary()), manText(arg.Help))
		}
		manFlags(&out, n.Flags)
	})
	_, err := io.WriteString(w, out.String())
	return err
}

func manFlags(out *strings.Builder, flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		text := "--" + f.Name
		if f.Short != 0 {
			text = "-" + string(f.Short) + ", " + text
		}
		if !f.IsBool() && !f.IsCounter() {
			text += "=" + f.FormatPlaceHolder()
		}
		fmt.Fprintf(out, ".TP\n.B %s\n%s\n", manText(text), manText(f.Help))
	}
}

// manText is a text of paragraphs, in which lines that begin with two spaces are code.
func manText(text string) string {
	var lines []string
	code := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if is := strings.HasPrefix(line, "  "); is != code {
			code = is
			lines = append(lines, map[bool]string{true: ".nf", false: ".fi"}[code])
		}
		if line == "" {
			lines = append(lines, ".PP")
		} else {
			lines = append(lines, manLine(line))
		}
	}
	if code {
		lines = append(lines, ".fi")
	}
	return strings.Join(lines, "\n")
}

// manLine is a line without anything that roff takes for a request.
func manLine(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
