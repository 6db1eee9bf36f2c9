package cli

import (
	"fmt"
	"io"
	"maps"
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
	script := bashScript(name, words(app))
	switch shell {
	case "fish":
		script = fishLines(name, app)
	case "zsh":
		script = "autoload -Uz bashcompinit && bashcompinit\n" + script
	}
	_, err := fmt.Fprintf(w, "# Completion of %s for %s.\n%s", name, shell, script)
	return err
}

// offered calls f with the commands that are not hidden, and with the flags of each, and of the
// whole program, that are not.
func offered(app *kong.Kong, f func(n *kong.Node, flags []*kong.Flag)) {
	for _, n := range app.Model.Children {
		if !n.Hidden {
			f(n, slices.DeleteFunc(slices.Concat(n.Flags, app.Model.Flags),
				func(f *kong.Flag) bool { return f.Hidden }))
		}
	}
}

// words returns what may stand at a place: after the program's name (""), after a
// command, and after a flag of a command ("run --progress").
func words(app *kong.Kong) map[string][]string {
	out := map[string][]string{}
	offered(app, func(n *kong.Node, flags []*kong.Flag) {
		out[""] = append(out[""], n.Name)
		for _, f := range flags {
			out[n.Name] = append(out[n.Name], "--"+f.Name)
			if f.Enum != "" {
				out[n.Name+" --"+f.Name] = strings.Split(f.Enum, ",")
			}
		}
	})
	return out
}

// bashScript looks the words up by the command and the word before.
func bashScript(name string, lines map[string][]string) string {
	var cases strings.Builder
	for _, key := range slices.Sorted(maps.Keys(lines)) {
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
	offered(app, func(n *kong.Node, flags []*kong.Flag) {
		fmt.Fprintf(&out, "complete -c %s -n __fish_use_subcommand -a %s -d %s\n", name, n.Name, quote(n.Help))
		for _, f := range flags {
			values := ""
			if f.Enum != "" {
				values = " -xa '" + strings.ReplaceAll(f.Enum, ",", " ") + "'"
			}
			fmt.Fprintf(&out, "complete -c %s -n '__fish_seen_subcommand_from %s' -l %s%s -d %s\n", name, n.Name,
				f.Name, values, quote(f.Help))
		}
	})
	return out.String()
}
