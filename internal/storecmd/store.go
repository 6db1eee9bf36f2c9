package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// Dir is the argument of commands that open a store.
type Dir struct {
	Dir Location `arg:"" help:"${store}"`
}

// takesOver is for commands that open a store to write to it.
type takesOver struct{}

// Help is what --help of the command says in addition to its flags.
func (takesOver) Help() string {
	return "In an object store the command takes the store over: a program that writes to it is fenced, and has to " +
		"open it again."
}

// read opens a view of the store for the time of a call: also while a writer has it, or if nothing may be written.
func (d *Dir) read(ctx context.Context, p *program, f func(db *kv.DB) error) error {
	if d.Dir.remote() {
		return d.with(ctx, p, &kv.Options{ReadOnly: true}, false, f)
	}
	return using(f)(kv.OpenReadOnly(string(d.Dir), nil))
}

// write opens the store, which must be there, for the time of a call, as it was opened last.
func (d *Dir) write(ctx context.Context, p *program, f func(db *kv.DB) error) error {
	return d.writeWith(ctx, p, d.Dir.stored(), f)
}

func (d *Dir) writeWith(ctx context.Context, p *program, o *kv.Options, f func(db *kv.DB) error) error {
	if err := d.Dir.changes(); err != nil {
		return err
	}
	if d.Dir.remote() {
		if err := d.exists(ctx, p); err != nil {
			return err
		}
		return d.with(ctx, p, o, false, f)
	}
	if _, err := os.Stat(string(d.Dir)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w in %s", kv.ErrNotExist, d.Dir)
	}
	if entries, err := os.ReadDir(string(d.Dir)); err == nil && len(entries) == 0 {
		return fmt.Errorf("%w in %s: the directory is empty", kv.ErrNotExist, d.Dir)
	}
	return d.with(ctx, p, o, false, f)
}

// writeOrRead opens the store for writing, which replays its log, and calls f. If a program writes to it, or its
// directory cannot be written to, or it is in an object store, it calls view with a view of it.
func (d *Dir) writeOrRead(ctx context.Context, p *program, f, view func(db *kv.DB) error) error {
	if d.Dir.remote() {
		return d.read(ctx, p, view)
	}
	opened := false
	err := d.write(ctx, p, func(db *kv.DB) error {
		opened = true
		return f(db)
	})
	if !opened && (errors.Is(err, kv.ErrLocked) || vfs.IsUnwritable(err)) {
		return d.read(ctx, p, view)
	}
	return err
}

// exists returns an error unless there is a store in an object store.
func (d *Dir) exists(ctx context.Context, p *program) error {
	f, err := p.freeze(ctx, d.Dir)
	if err != nil {
		return err
	}
	if f.current == nil {
		err = fmt.Errorf("%w in %s", kv.ErrNotExist, d.Dir)
	}
	return errors.Join(err, f.Close())
}

// writeOrCreate is write, and makes a store that is not there if it may.
func (d *Dir) writeOrCreate(ctx context.Context, p *program, create bool, f func(db *kv.DB) error) error {
	if err := d.Dir.changes(); err != nil {
		return err
	}
	if create {
		return d.with(ctx, p, d.Dir.stored(), true, f)
	}
	return d.write(ctx, p, f)
}

func (d *Dir) with(ctx context.Context, p *program, o *kv.Options, create bool, f func(db *kv.DB) error) error {
	if d.Dir.remote() {
		return d.withObjects(ctx, p, o, create, f)
	}
	db, err := kv.Open(string(d.Dir), o)
	if errors.Is(err, kv.ErrInvalidOptions) {
		err = fmt.Errorf("%w (what the command line does not say is taken from %s; without it that is the default)",
			err, filepath.Join(string(d.Dir), manifest.OptionsName))
	}
	return using(f)(db, err)
}

func (d *Dir) withObjects(ctx context.Context, p *program, o *kv.Options, create bool,
	f func(db *kv.DB) error) (err error) {
	objects, err := p.objects(ctx, d.Dir, create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, objects.Store.Close()) }()
	opts, open := kv.Options{}, kv.Open
	if o != nil {
		opts = *o
	}
	if opts.ReadOnly {
		open = kv.OpenReadOnly
	}
	opts.Objects = objects
	db, err := open("", &opts)
	if err != nil {
		return fmt.Errorf("%w (objects: %s)", err, d.Dir)
	}
	return using(f)(db, nil)
}

// stored returns the known options that the store was last opened with: in an object store there are none.
func (l Location) stored() *kv.Options {
	if l.remote() {
		return &kv.Options{}
	}
	return doctor.LastOptions(string(l))
}

// using returns a function that calls f with a store and closes it.
func using(f func(db *kv.DB) error) func(*kv.DB, error) error {
	return func(db *kv.DB, err error) error {
		if err != nil {
			return err
		}
		return errors.Join(f(db), db.Close())
	}
}

// size returns what the tables and blob files of a store take.
func size(db *kv.DB) (files int, bytes int64) {
	m := db.Metrics()
	for _, l := range m.Levels {
		files += l.Files
		bytes += l.Bytes
	}
	return files + m.Blobs.Files, bytes + m.Blobs.Bytes
}

type ingestCommand struct {
	takesOver
	Dir
	Files      cli.Files `arg:"" help:"Sorted files of sstable.Writer, in any order; their keys must not overlap."`
	Link       bool      `help:"${link}"`
	SkipVerify bool      `help:"Take on trust that the files are whole: read no data blocks."`
	Create     bool      `help:"Create the store if it is not there."`
}

// Run takes in all of the files, or none.
func (c *ingestCommand) Run(ctx context.Context, p *program) error {
	var files, bytes uint64
	err := c.writeOrCreate(ctx, p, c.Create, func(db *kv.DB) error {
		err := db.Ingest(ctx, c.Files, &kv.IngestOptions{Link: c.Link, SkipVerify: c.SkipVerify})
		m := db.Metrics()
		files, bytes = m.IngestedFiles, m.IngestedBytes
		return err
	})
	if err != nil {
		return err
	}
	var names []keytext.Name
	for _, f := range c.Files {
		names = append(names, keytext.Name(f))
	}
	p.answer(object{"bytes", bytes, "files", files, "ingested", names},
		"%s, %d bytes\n", count(int(files), "file"), bytes)
	return nil
}

type compactCommand struct {
	takesOver
	Dir
	Lower  string `placeholder:"KEY" help:"First key of the range."`
	Upper  string `placeholder:"KEY" help:"Last key of the range."`
	Filter string `placeholder:"SPEC" help:"${filter}"`

	Compression string `enum:",none,snappy,zstd" default:"" placeholder:"NAME" help:"${compression}"`
}

// Run compacts and says what the store takes before and after.
func (c *compactCommand) Run(ctx context.Context, p *program) error {
	lower, upper, err := p.parseRange(c.Lower, c.Upper)
	if err != nil {
		return err
	}
	o := c.Dir.Dir.stored()
	if c.Filter != "" {
		if o.Filter, err = filterpolicy.Parse(c.Filter); err != nil {
			return usagef("%w", err)
		}
	}
	if c.Compression != "" {
		o.LevelCompression = [kv.NumLevels]sstable.Compression{}
		if o.Compression, err = sstable.ParseCompression(c.Compression); err != nil {
			return usagef("%w", err)
		}
	}
	return c.writeWith(ctx, p, o, func(db *kv.DB) error {
		filesBefore, bytesBefore := size(db)
		if err := db.Compact(ctx, lower, upper); err != nil {
			return err
		}
		files, bytes := size(db)
		p.answer(object{"bytes", bytes, "bytes_before", bytesBefore, "files", files, "files_before", filesBefore},
			"%s, %d bytes; before: %s, %d bytes\n", count(files, "file"), bytes, count(filesBefore, "file"),
			bytesBefore)
		return nil
	})
}
