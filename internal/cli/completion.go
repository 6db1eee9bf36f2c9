package cli

import (
	_ "embed" // the script
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Shells lists the shells that Completion knows.
var Shells = []string{"bash", "zsh", "fish"}

// Completion writes a script that completes the names of a program's commands and
// flags, and the values of flags that have a fixed set. The shell falls back to files
// where it offers nothing. To be read by the shell: source <(program completion bash).
func Completion(w io.Writer, app *kong.Kong, shell string) error {
	name := app.Model.Name
	script := ""
	switch shell {
	case "fish":
		script = fishLines(name, app)
	case "zsh":
		script = "autoload -Uz bashcompinit && bashcompinit\n" + bashScript(name, app)
	default:
		script = bashScript(name, app)
	}
	_, err := fmt.Fprintf(w, "# Completion of %s for %s.\n%s", name, shell, script)
	return err
}

// offered calls f with the program, and with all commands below it that are not hidden.
func offered(app *kong.Kong, f func(n *kong.Node)) {
	var visit func(n *kong.Node)
	visit = func(n *kong.Node) {
		f(n)
		for _, c := range n.Children {
			if !c.Hidden {
				visit(c)
			}
		}
	}
	visit(app.Model.Node)
}

// pathOf returns the names of a command from the program's on, without that.
func pathOf(n *kong.Node) string {
	if n.Parent == nil {
		return ""
	}
	return strings.TrimSpace(pathOf(n.Parent) + " " + n.Name)
}

// flagsOf returns the flags that may stand after a command: its own and those of the commands above it.
func flagsOf(n *kong.Node) (flags []*kong.Flag) {
	for ; n != nil; n = n.Parent {
		flags = append(flags, slices.DeleteFunc(slices.Clone(n.Flags), func(f *kong.Flag) bool { return f.Hidden })...)
	}
	return flags
}

func subcommands(n *kong.Node) (names []string) {
	for _, c := range n.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// bashSource has %[1]s in place of the name of the program, and %[2]s in that of the cases: words after a command.
//
//go:embed completion.bash
var bashSource string

// bashScript finds the command in the words before the current one, past flags and their values.
func bashScript(name string, app *kong.Kong) string {
	var cases strings.Builder
	offered(app, func(n *kong.Node) {
		path := pathOf(n)
		var flags, valued []string
		for _, f := range flagsOf(n) {
			flags = append(flags, "--"+f.Name)
			switch {
			case f.IsBool() || f.IsCounter():
				continue
			case f.Enum != "":
				fmt.Fprintf(&cases, "    %q) words=%q ;;\n", path+" --"+f.Name, strings.ReplaceAll(f.Enum, ",", " "))
			}
			valued = append(valued, "--"+f.Name)
			if f.Short != 0 {
				valued = append(valued, "-"+string(f.Short))
			}
		}
		values := strings.Join(subcommands(n), " ")
		for _, arg := range n.Positional {
			values = strings.TrimSpace(values + " " + strings.ReplaceAll(arg.Enum, ",", " "))
		}
		if len(n.Children) > 0 { // before the line of help itself, which is shorter
			fmt.Fprintf(&cases, "    %q) words=%q ;;\n", strings.TrimSpace("help "+path)+" ", values)
		}
		fmt.Fprintf(&cases, "    %q) words=%q ;;\n", path+" ", values)
		fmt.Fprintf(&cases, "    %q) words=%q ;;\n", path+" -", strings.Join(flags, " "))
		fmt.Fprintf(&cases, "    %q) words=%q ;;\n", path+" =", strings.Join(valued, " "))
	})
	return fmt.Sprintf(bashSource, name, cases.String())
}

// fishLines has a line per command and per flag.
func fishLines(name string, app *kong.Kong) string {
	var out strings.Builder
	quote := func(text string) string {
		first, _, _ := strings.Cut(text, ".")
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", " ").Replace(first) + "'"
	}
	offered(app, func(n *kong.Node) {
		at := "" // the condition that the command was given, and none below it
		for c := n; c.Parent != nil; c = c.Parent {
			at = "; and __fish_seen_subcommand_from " + c.Name + at
		}
		below := at
		if names := subcommands(n); len(names) > 0 {
			below += "; and not __fish_seen_subcommand_from " + strings.Join(names, " ")
		}
		line := func(condition, rest string) {
			if condition = strings.TrimPrefix(condition, "; and "); condition != "" {
				condition = " -n '" + condition + "'"
			}
			fmt.Fprintf(&out, "complete -c %s%s%s\n", name, condition, rest)
		}
		if n.Parent == nil {
			words := strings.Join(slices.DeleteFunc(subcommands(n), func(s string) bool { return s == "help" }), " ")
			line("__fish_seen_subcommand_from help; and not __fish_seen_subcommand_from "+words, " -a '"+words+"'")
		}
		for _, c := range n.Children {
			if !c.Hidden {
				line(below, " -a "+c.Name+" -d "+quote(c.Help))
			}
		}
		for _, f := range n.Flags {
			if f.Hidden {
				continue
			}
			rest := " -l " + f.Name
			switch {
			case f.Enum != "":
				rest += " -xa '" + strings.ReplaceAll(f.Enum, ",", " ") + "'"
			case !f.IsBool() && !f.IsCounter():
				rest += " -r"
			}
			line(at, rest+" -d "+quote(f.Help))
		}
	})
	return out.String()
}
