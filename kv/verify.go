package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/wal"
)

// Verify opens the store in dir read-only and checks all of it: the manifest,
// every log, and every byte of every table. It writes one line per table to w, and
// one for a log or manifest that breaks off, as a crash leaves it. It returns all
// faults it found, joined.
func Verify(dir string, w io.Writer) error { return VerifyContext(context.Background(), dir, w) }

// VerifyContext is Verify for a caller who waits no longer than ctx lasts: after the
// table that it is in, it returns what it found so far with an error that matches
// ctx.Err().
func VerifyContext(ctx context.Context, dir string, w io.Writer) error {
	return verifyFS(ctx, dir, &Options{}, w)
}

// verifyFS verifies a store that is opened with some options.
func verifyFS(ctx context.Context, dir string, o *Options, w io.Writer) (err error) {
	o.Logger = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.ReadOnly, o.CacheSize = true, -1
	d, err := Open(dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.verifyContext(ctx, w)
}

// verify checks the tables of an open store.
func (d *DB) verify(w io.Writer) error { return d.verifyContext(context.Background(), w) }

func (d *DB) verifyContext(ctx context.Context, w io.Writer) error {
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
	s.version.All(func(level int, t *version.Table) {
		if ctx.Err() != nil {
			return
		}
		err := d.verifyTable(t)
		verdict := "ok"
		if err != nil {
			errs = append(errs, err)
			verdict = "not read: " + err.Error()
		}
		if errors.Is(err, ErrCorruption) {
			verdict = "DAMAGED: " + err.Error()
		}
		report("L%d %s %d bytes, %d entries: %s\n", level, t.Name(), t.Size, t.Entries, verdict)
	})
	for _, m := range append(s.imms, s.mem) {
		if !m.Empty() {
			report("log: %d entries, not yet in tables: ok\n", m.Len())
		}
	}
	name, end, err := d.manifestEnd()
	if err != nil {
		errs = append(errs, err)
	} else if end != nil {
		report("%s: breaks off behind its last whole edit, as a crash leaves it; what is behind was never in force: %v\n", name, end)
	}
	if ctx.Err() != nil {
		errs = append(errs, base.ContextError(ctx, "the store was not verified to its end"))
	}
	return errors.Join(errs...)
}

// manifestEnd returns the name of the manifest in force, and what ends it if that is
// not the end of an edit: a torn tail. Any other damage keeps the store from opening.
func (d *DB) manifestEnd() (name string, end, err error) {
	num, err := manifest.Current(d.fs, d.dir)
	if err != nil {
		return "", nil, err
	}
	name = d.path(manifest.FileManifest, num)
	f, err := d.fs.Open(name)
	if err != nil {
		return name, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := wal.NewReader(f, name, num)
	for end == nil {
		_, end = r.Next()
	}
	switch {
	case errors.Is(end, io.EOF):
		return name, nil, nil
	case !wal.Broken(end):
		return name, nil, end
	}
	return name, end, nil
}

// verifyTable checks a table's file, and that the manifest describes it.
func (d *DB) verifyTable(t *version.Table) error {
	r, err := t.Open(&d.tables)
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
		{"merge operands", t.Merges, p.Merges},
		{"expiring values", t.Expiring, p.Expiring},
		{"last expiry", t.LastExpiry, p.LastExpiry},
		{"median expiry", t.ExpiryOctiles[3], p.ExpiryOctiles[3]},
		{"overwritten entries", t.Overwritten, p.Overwritten},
		{"largest sequence number", uint64(t.LargestSeq), uint64(max(p.LargestSeq, t.Seq))},
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
