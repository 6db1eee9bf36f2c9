package repair

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// LostForSure reports whether something was lost for certain.
func (r *Report) LostForSure() bool {
	return slices.ContainsFunc(r.Lost, func(l Loss) bool { return !l.Possible })
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	if !r.Needed && r.Out == "" {
		fmt.Fprintf(&b, "%s: nothing is damaged, and nothing was done\n", r.Dir)
		_, err := io.WriteString(w, b.String())
		return err
	}
	for _, d := range r.Damage {
		fmt.Fprintf(&b, "damage: %s\n", d)
	}
	for _, f := range r.Files {
		fmt.Fprintf(&b, "%s: %s", f.Name, f.Action)
		if len(f.Into) > 0 {
			fmt.Fprintf(&b, " into %s", strings.Join(f.Into, ", "))
		}
		if f.Why != "" {
			fmt.Fprintf(&b, " (%s)", f.Why)
		}
		if f.MovedTo != "" {
			fmt.Fprintf(&b, "; the original is in %s", f.MovedTo)
		}
		b.WriteByte('\n')
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for i := range r.Lost {
		word := "lost"
		if r.Lost[i].Possible {
			word = "perhaps lost"
		}
		fmt.Fprintf(&b, "%s: %s\n", word, &r.Lost[i])
	}
	if len(r.Lost) == 0 {
		b.WriteString("nothing was lost\n")
	}
	done, where := "the repaired store has", r.Dir
	if r.Out != "" {
		where = r.Out
	}
	if r.DryRun {
		done = "a repair would leave"
	}
	fmt.Fprintf(&b, "%s: %s %d tables with %d entries; levels by %s\n", where, done, r.Tables, r.Entries, r.Levels)
	_, err := io.WriteString(w, b.String())
	return err
}
