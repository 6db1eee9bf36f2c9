package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Verdict is what verifying a store tells.
type Verdict struct {
	Dir     keytext.Name `json:"dir"`
	OK      bool         `json:"ok"`
	Files   []FileState  `json:"files"`
	Damage  []Damage     `json:"damage"`
	Notes   []string     `json:"notes"`
	Garbage []File       `json:"garbage"`
}

// A FileState is what was found of one file.
type FileState struct {
	Name    string `json:"name"`
	Level   *int   `json:"level,omitempty"` // of a table
	Bytes   int64  `json:"bytes"`
	Entries uint64 `json:"entries"` // of a table, writes of a log, or values of a blob file
	OK      bool   `json:"ok"`
	unread  bool
}

// Verdict sums up a deep survey.
func (s *Store) Verdict() *Verdict {
	v := &Verdict{Dir: keytext.Name(s.Dir), OK: len(s.Damage) == 0 && !s.unread(),
		Damage: append([]Damage{}, s.Damage...), Notes: append([]string{}, s.Notes...),
		Garbage: append([]File{}, s.Garbage...)}
	bad := map[string]bool{}
	for _, d := range s.Damage {
		bad[d.File] = true
	}
	name := cmp.Or(s.Current, "MANIFEST")
	if s.Manifest != nil {
		name = s.Manifest.Name
	}
	v.Files = append(v.Files, FileState{Name: "CURRENT", OK: !bad["CURRENT"]}, FileState{Name: name, OK: !bad[name]})
	for i := range s.Tables {
		t := &s.Tables[i]
		if t.Level < 0 && s.Manifest != nil {
			continue
		}
		f := FileState{Name: t.Name, Bytes: t.Size, OK: !bad[t.Name] && t.Unread == nil, unread: t.Unread != nil}
		if t.Level >= 0 {
			f.Level = &t.Level
		}
		if t.Info != nil {
			f.Entries = t.Info.Entries
		}
		v.Files = append(v.Files, f)
	}
	for i := range s.Blobs {
		b := &s.Blobs[i]
		if b.Listing == nil && s.Manifest != nil && !b.Logged {
			continue
		}
		v.Files = append(v.Files, FileState{Name: b.Name, Bytes: b.Size, Entries: b.Records,
			OK: !bad[b.Name] && b.Unread == nil, unread: b.Unread != nil})
	}
	for _, l := range s.LiveLogs() {
		v.Files = append(v.Files, FileState{Name: l.Name, Bytes: l.Bytes, Entries: l.Writes, OK: !bad[l.Name]})
	}
	return v
}

// unread reports whether there is a file that could not be read.
func (s *Store) unread() bool {
	return slices.ContainsFunc(s.Tables, func(t Table) bool { return t.Unread != nil }) ||
		slices.ContainsFunc(s.Blobs, func(b Blob) bool { return b.Unread != nil })
}

// WriteText writes the verdict for people.
func (v *Verdict) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, f := range v.Files {
		state := "ok"
		switch {
		case f.unread:
			state = "not read"
		case !f.OK:
			state = "DAMAGED"
		}
		level := "  "
		if f.Level != nil {
			level = fmt.Sprintf("L%d", *f.Level)
		}
		fmt.Fprintf(&b, "%s %-18s", level, f.Name)
		if f.Bytes > 0 {
			fmt.Fprintf(&b, " %12d bytes %10d entries", f.Bytes, f.Entries)
		} else {
			fmt.Fprintf(&b, " %37s", "")
		}
		fmt.Fprintf(&b, "  %s\n", state)
	}
	for _, d := range v.Damage {
		fmt.Fprintf(&b, "damage: %s\n", keytext.Escaped(d.String()))
	}
	for _, n := range v.Notes {
		fmt.Fprintf(&b, "note: %s\n", keytext.Escaped(n))
	}
	if len(v.Garbage) > 0 {
		fmt.Fprintf(&b, "%d files that the store does not use any more: the next open for writing removes them\n",
			len(v.Garbage))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Verify checks all of the store in dir: the manifest, every log, every byte of every table, and that open, which opens
// it read-only and closes it again, succeeds. Its faults are the result's Damage. It takes the store's lock as a reader
// does. If the directory is moved meanwhile, the result is about what it was, and the error matches vfs.ErrMoved.
func Verify(ctx context.Context, dir string, o Options, open func() error) (s *Store, err error) {
	o.Deep = true
	if o.FS == nil {
		o.FS = vfs.OS
	}
	hold := func() (*Held, error) { return Hold(o.FS, dir, vfs.Shared) }
	if o.BesideWriter {
		hold = func() (*Held, error) { return HoldBeside(o.FS, dir) }
	}
	h, err := hold()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if s, err = h.Take(ctx, o); err != nil || len(s.Damage) > 0 || h.Moved() != nil {
		return s, err
	}
	if err = open(); errors.Is(err, base.ErrCorruption) {
		s.Damage = damageOf(".", err)
		return s, nil
	}
	return s, err
}
