package repair

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/keyformat"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/survey"
)

// A Report says what a repair found, did and lost.
type Report struct {
	Dir    keytext.Name `json:"dir"`
	Out    keytext.Name `json:"out,omitempty"` // where the repaired store is, if not in Dir
	DryRun bool         `json:"dry_run"`
	// Needed is false if nothing was damaged: then nothing was done.
	Needed bool `json:"needed"`
	// Levels says where the tables' levels come from: "manifest", or "sequence
	// numbers" if the manifest could not be trusted.
	Levels string          `json:"levels,omitempty"`
	Damage []survey.Damage `json:"damage"`
	Files  []File          `json:"files"`
	Lost   []Loss          `json:"lost"`
	Notes  []string        `json:"notes"`

	Tables  int    `json:"tables"`  // of the repaired store
	Blobs   int    `json:"blobs"`   // its blob files
	Entries uint64 `json:"entries"` // in them: every version and point tombstone
}

// Actions of a repair on a file.
const (
	Kept     = "kept"     // it is a table of the repaired store as it is
	Rewrote  = "rewrote"  // what checks out of it is in new tables
	Replayed = "replayed" // the log's records are in a new table
	LeftOut  = "left out" // the repaired store does without it
	Replaced = "replaced" // a manifest or CURRENT
	Missing  = "missing"
)

// A File is what became of one file of the store.
type File struct {
	Name    string   `json:"name"`
	Action  string   `json:"action"`
	Why     string   `json:"why,omitempty"`
	Into    []string `json:"into,omitempty"`     // new tables
	MovedTo string   `json:"moved_to,omitempty"` // relative to the store's directory
}

// A Range is a range of keys; a nil bound has no limit.
type Range struct {
	Lower          keyformat.Bytes `json:"lower"`
	Upper          keyformat.Bytes `json:"upper"`
	UpperExclusive bool            `json:"upper_exclusive,omitempty"`
}

// Contains reports whether a key is in the range.
func (r *Range) Contains(key []byte) bool {
	if r.Lower != nil && string(key) < string(r.Lower) {
		return false
	}
	return r.Upper == nil || string(key) < string(r.Upper) || !r.UpperExclusive && string(key) == string(r.Upper)
}

func (r *Range) String() string {
	lower, upper, end := "the first key", "the last key", ""
	if r.Lower != nil {
		lower = r.Lower.String()
	}
	if r.Upper != nil {
		upper = r.Upper.String()
	}
	if r.UpperExclusive {
		end = " (excluded)"
	}
	return lower + " to " + upper + end
}

func boundsOf(t *manifest.Table) *Range {
	return &Range{Lower: append([]byte{}, t.Smallest...), Upper: t.Largest, UpperExclusive: t.LargestExclusive}
}

// clip narrows the open sides of r to the bounds of the table it was in.
func (r *Range) clip(t *manifest.Table) {
	if t == nil {
		return
	}
	if r.Lower == nil {
		r.Lower = append([]byte{}, t.Smallest...)
	}
	if r.Upper == nil && rangedel.CompareEnds(t.Largest, nil) < 0 {
		r.Upper, r.UpperExclusive = t.Largest, t.LargestExclusive
	}
}

// A Loss is writes that the repaired store does not have: values, and deletions too. So
// keys in its ranges may be missing, have an older value, or be back although they were
// deleted.
type Loss struct {
	File string `json:"file"`
	What string `json:"what"`
	// Ranges have the keys of the lost writes; nil: not known, any key may be concerned.
	Ranges []Range `json:"ranges"`
	// Writes is how many versions and tombstones were lost; nil: it is not known.
	Writes *uint64 `json:"writes"`
	// FirstSeq and LastSeq are the lost sequence numbers, if these are known.
	FirstSeq uint64 `json:"first_seq,omitempty"`
	LastSeq  uint64 `json:"last_seq,omitempty"`
	// Values are the listed lost values; Unlisted is the number of further ones, with keys in Ranges.
	Values   []LostValue `json:"values,omitempty"`
	Unlisted uint64      `json:"unlisted,omitempty"`
	// Possible is set if it is not certain that there was anything to lose.
	Possible bool `json:"possible,omitempty"`
}

// Covers reports whether the loss may concern a key.
func (l *Loss) Covers(key []byte) bool {
	if l.Ranges == nil {
		return true
	}
	for i := range l.Ranges {
		if l.Ranges[i].Contains(key) {
			return true
		}
	}
	return slices.ContainsFunc(l.Values, func(v LostValue) bool { return string(v.Key) == string(key) })
}

// String is one line, or more if there are several ranges or values.
func (l *Loss) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: ", l.File, l.What)
	switch {
	case l.Writes != nil && l.Values != nil:
		fmt.Fprintf(&b, "%d values", *l.Writes)
	case l.Writes != nil:
		fmt.Fprintf(&b, "%d writes", *l.Writes)
	case l.Possible:
		b.WriteString("perhaps nothing, perhaps an unknown number of writes")
	default:
		b.WriteString("an unknown number of writes")
	}
	if l.LastSeq > 0 {
		fmt.Fprintf(&b, " (sequence numbers %d to %d)", l.FirstSeq, l.LastSeq)
	}
	if l.Ranges == nil {
		b.WriteString(", of any key")
	}
	l.writeValues(&b)
	for i := range l.Ranges {
		fmt.Fprintf(&b, "\n    keys %s", &l.Ranges[i])
	}
	return b.String()
}

// Covers reports whether what was lost may concern a key.
func (r *Report) Covers(key []byte) bool {
	for i := range r.Lost {
		if r.Lost[i].Covers(key) {
			return true
		}
	}
	return false
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (r *Report) lose(l Loss) { r.Lost = append(r.Lost, l) }

func (r *Report) file(name, action, why string) {
	r.Files = append(r.Files, File{Name: name, Action: action, Why: why})
}

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
		fmt.Fprintf(&b, "damage: %s\n", keytext.Escaped(d.String()))
	}
	for _, f := range r.Files {
		fmt.Fprintf(&b, "%s: %s", f.Name, f.Action)
		if len(f.Into) > 0 {
			fmt.Fprintf(&b, " into %s", strings.Join(f.Into, ", "))
		}
		if f.Why != "" {
			fmt.Fprintf(&b, " (%s)", keytext.Escaped(f.Why))
		}
		if f.MovedTo != "" {
			fmt.Fprintf(&b, "; the original is in %s", f.MovedTo)
		}
		b.WriteByte('\n')
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", keytext.Escaped(n))
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
	fmt.Fprintf(&b, "%s: %s %d tables with %d entries", where, done, r.Tables, r.Entries)
	if r.Blobs > 0 {
		fmt.Fprintf(&b, " and %d blob files", r.Blobs)
	}
	fmt.Fprintf(&b, "; levels by %s\n", r.Levels)
	_, err := io.WriteString(w, b.String())
	return err
}
