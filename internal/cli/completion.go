package cli

import (
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
	lines := words(app)
	name := app.Model.Name
	var err error
	switch shell {
	case "fish":
		_, err = fmt.Fprintf(w, "# Completion of %s for fish.\n%s", name, fishLines(name, app))
	case "zsh":
		_, err = fmt.Fprintf(w, "# Completion of %s for zsh.\nautoload -Uz bashcompinit && bashcompinit\n%s", name,
			bashScript(name, lines))
	default:
		_, err = fmt.Fprintf(w, "# Completion of %s for bash.\n%s", name, bashScript(name, lines))
	}
	return err
}

// commandsOf returns the commands that are not hidden.
func commandsOf(app *kong.Kong) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(app.Model.Children), func(n *kong.Node) bool { return n.Hidden })
}

// flagsOf returns the flags of a command and those of the whole program, without the
// hidden ones.
func flagsOf(app *kong.Kong, n *kong.Node) []*kong.Flag {
	return slices.DeleteFunc(slices.Concat(n.Flags, app.Model.Flags), func(f *kong.Flag) bool { return f.Hidden })
}

// words returns what may stand at a place: after the program's name (""), after a
// command, and after a flag of a command ("run --progress").
func words(app *kong.Kong) map[string][]string {
	out := map[string][]string{}
	for _, n := range commandsOf(app) {
		out[""] = append(out[""], n.Name)
		for _, f := range flagsOf(app, n) {
			out[n.Name] = append(out[n.Name], "--"+f.Name)
			if f.Enum != "" {
				out[n.Name+" --"+f.Name] = strings.Split(f.Enum, ",")
			}
		}
	}
	return out
}

// bashScript looks the words up by the command and the word before.
func bashScript(name string, lines map[string][]string) string {
	var cases strings.Builder
	keys := make([]string, 0, len(lines))
	for key := range lines {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if key != "" {
			fmt.Fprintf(&cases, "    %q) words=%q ;;\n", key, strings.Join(lines[key], " "))
		}
	}
	return fmt.Sprintf(`_%[1]s() {
  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}" words="" key
  if [ "$COMP_CWORD" -le 1 ]; then
    COMPREPLY=($(compgen -W %[2]q -- "$current"))
    return
  fi
  for key in "$command $before" "$command"; do
    case "$key" in
%[3]s    esac
    [ -n "$words" ] && break
  done
  case "$before" in
    --*) [ "$key" = "$command" ] && [ "${current#-}" = "$current" ] && words="" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _%[1]s %[1]s
`, name, strings.Join(lines[""], " "), cases.String())
}

// fishLines has a line per command and per flag.
func fishLines(name string, app *kong.Kong) string {
	var out strings.Builder
	quote := func(text string) string {
		first, _, _ := strings.Cut(text, ".")
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", " ").Replace(first) + "'"
	}
	for _, n := range commandsOf(app) {
		fmt.Fprintf(&out, "complete -c %s -n __fish_use_subcommand -a %s -d %s\n", name, n.Name, quote(n.Help))
		for _, f := range flagsOf(app, n) {
			values := ""
			if f.Enum != "" {
				values = " -xa '" + strings.ReplaceAll(f.Enum, ",", " ") + "'"
			}
			fmt.Fprintf(&out, "complete -c %s -n '__fish_seen_subcommand_from %s' -l %s%s -d %s\n", name, n.Name,
				f.Name, values, quote(f.Help))
		}
	}
	return out.String()
}
