package kv

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/siftkv/siftkv/internal/manifest"
)

// Verify opens the store in dir read-only and checks all of it: the manifest,
// every log, and every byte of every table. It writes one line per table to w, and
// one for a log that breaks off in writes that were not synced, as a crash leaves
// it. It returns all faults it found, joined.
func Verify(dir string, w io.Writer) (err error) {
	logger := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, err := Open(dir, &Options{ReadOnly: true, CacheSize: -1, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.verify(w)
}

func (d *DB) verify(w io.Writer) error {
	s := d.acquire(0)
	if s == nil {
		return ErrClosed
	}
	defer d.release(s, 0)
	var errs []error
	report := func(format string, args ...any) {
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			errs = append(errs, err)
		}
	}
	s.version.all(func(level int, t *table) {
		err := d.verifyTable(t)
		verdict := "ok"
		if err != nil {
			errs = append(errs, err)
			verdict = "DAMAGED: " + err.Error()
		}
		report("L%d %s %d bytes, %d entries: %s\n", level, t.name(), t.Size, t.Entries, verdict)
	})
	for _, m := range append(s.imms, s.mem) {
		if !m.empty() {
			report("log: %d entries, not yet in tables: ok\n", m.points.Len())
		}
	}
	return errors.Join(errs...)
}

// verifyTable checks a table's file, and that the manifest describes it.
func (d *DB) verifyTable(t *table) error {
	r, err := d.openTable(t)
	if err != nil {
		return err
	}
	if err := r.Verify(); err != nil {
		return err
	}
	p := r.Properties()
	for _, c := range []struct {
		what        string
		said, found uint64
	}{
		{"entries", t.Entries, p.Entries},
		{"deletes", t.Deletes, p.Deletes},
		{"range deletes", t.RangeDeletes, p.RangeDeletes},
		{"largest sequence number", uint64(t.LargestSeq), uint64(p.LargestSeq)},
	} {
		if c.said != c.found {
			return &CorruptionError{File: d.path(manifest.FileTable, t.Num), Offset: -1, Hint: d.hint(),
				What: fmt.Sprintf("the manifest says that %s is %d, the file has %d", c.what, c.said, c.found)}
		}
	}
	if p.Entries > 0 && (!t.Contains(p.Smallest) || !t.Contains(p.Largest)) {
		return &CorruptionError{File: d.path(manifest.FileTable, t.Num), Offset: -1, Hint: d.hint(),
			What: "the file has keys outside the bounds that the manifest gives it"}
	}
	return nil
}
