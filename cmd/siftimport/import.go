package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/build"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/compare"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/work"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

type command struct {
	Version cli.VersionFlag `short:"V" help:"Print the version, and exit."`

	Source Source        `arg:"" help:"${source}"`
	Dest   cli.Directory `arg:"" help:"${dest}"`

	Filter      string `default:"blocked:10" placeholder:"SPEC" help:"Filter of the files (default ${default})."`
	Compression string `default:"snappy" enum:"none,snappy,zstd" help:"none, snappy or zstd (default ${default})."`
	BlockSize   int    `default:"4096" placeholder:"BYTES" help:"Size of a data block (default ${default})."`
	FileSize    int    `default:"32" placeholder:"MIB" help:"${filesize} (Default ${default} MiB.)"`
	Threads     int    `placeholder:"N" help:"Threads to read, and to build files (default: one for each processor)."`
	Bucket      string `placeholder:"NAME" help:"${bucket}"`

	BadgerValueDir string `placeholder:"DIR" help:"Where the value log of a Badger store is, if not in its directory."`

	Verify bool `default:"true" negatable:"" help:"${verify}"`
	JSON   bool `name:"json" help:"Print the result as a JSON object."`
	Quiet  bool `short:"q" help:"No progress."`
}

type importer struct {
	*command
	program *program
	writer  sstable.WriterOptions
	report  *progress.Reporter
	store   source.Store
	dir     *work.Dir
	read    *compare.Side // what the files were made of; nil: another run has made some
	result  result
}

func (c *command) run(ctx context.Context, p *program) error {
	im := &importer{command: c, program: p}
	if err := errors.Join(c.checkSource(), im.options()); err != nil {
		return err
	}
	mode := "auto"
	if c.Quiet {
		mode = "none"
	}
	im.report = progress.New(p.stderr, mode)
	again, err := im.begin()
	if err != nil {
		return err
	}
	if again != "" {
		im.say("the files of %s are not used: %s", im.dir.Path, again)
	}
	return im.finish(im.run(ctx))
}

// options reads the flags that say how files are written.
func (im *importer) options() error {
	filter, err := filterpolicy.Parse(im.Filter)
	if err != nil {
		return usagef("%w", err)
	}
	compression, err := sstable.ParseCompression(im.Compression)
	if err != nil {
		return usagef("%w", err)
	}
	const most = 1 << 20 // what a store opens by default
	switch {
	case im.BlockSize < 64 || im.BlockSize > most:
		return usagef("--block-size is 64 to %d", most)
	case im.FileSize < 1 || im.FileSize > 4096:
		return usagef("--file-size is 1 to 4096")
	case im.Threads < 0 || im.Threads > 256:
		return usagef("--threads is 1 to 256")
	case im.Threads == 0:
		im.Threads = runtime.GOMAXPROCS(0)
	}
	if scheme := cli.Scheme(string(im.Dest)); scheme != "" {
		return usagef("%s: a store is imported into a directory; siftkv copy takes it on to an object store",
			cli.RedactURL(string(im.Dest)))
	}
	im.writer = sstable.WriterOptions{BlockSize: im.BlockSize, Compression: compression, Filter: filter}
	return nil
}

// begin opens the work directory and the source.
func (im *importer) begin() (again string, err error) {
	kind, path := im.Source.cut()
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	h := work.Header{Source: fmt.Sprintf("%s:%s %q", kind, path, im.bucket()), Started: time.Now().UTC(),
		Settings: fmt.Sprintf("%s %s %d %d", im.writer.Filter.Name(), im.Compression, im.BlockSize, im.FileSize)}
	if h.Contents, err = im.contents(); err != nil {
		return "", err
	}
	if im.dir, again, err = work.Open(filepath.Clean(string(im.Dest))+".import", h); err != nil {
		return "", err
	}
	scratch, err := im.dir.Scratch()
	if err == nil {
		im.store, err = im.open(scratch, im.dir.Header.Started)
	}
	if err == nil {
		return again, nil
	}
	if len(im.dir.Files) == 0 {
		return "", errors.Join(err, im.dir.Remove())
	}
	return "", errors.Join(err, im.dir.Close())
}

func (im *importer) run(ctx context.Context) error {
	if im.dir.Stage == "" {
		if err := im.checkDest(); err != nil {
			return err
		}
		if err := im.build(ctx); err != nil {
			return err
		}
		if err := im.dir.Reach(work.Ingesting); err != nil {
			return err
		}
	}
	return im.with(func(db *kv.DB) error {
		if im.dir.Stage != work.Ingested {
			if err := im.ingest(ctx, db); err != nil {
				return err
			}
		}
		if !im.Verify {
			return nil
		}
		return im.verify(ctx, db)
	})
}

// finish closes everything, and prints the result unless there is an error. The files stay for the next run after one
// that another run may do without.
func (im *importer) finish(err error) error {
	im.result.Notes = im.store.Notes()
	err = errors.Join(err, im.store.Close())
	switch {
	case errors.Is(err, errDiffers):
		err = fmt.Errorf("%w; remove %s, and import again", err, im.Dest)
		return errors.Join(err, im.dir.Remove())
	case err == nil:
		err = im.dir.Remove()
	case len(im.dir.Files) == 0:
		return errors.Join(err, im.dir.Remove())
	default:
		return errors.Join(err, im.dir.Close())
	}
	if err != nil {
		return err
	}
	return im.print()
}

// say writes a line to standard error.
func (im *importer) say(format string, args ...any) {
	if !im.Quiet {
		im.report.Line("siftimport: "+format, args...)
	}
}

// checkDest returns an error unless the store can be made.
func (im *importer) checkDest() error {
	dest := string(im.Dest)
	names, err := os.ReadDir(dest)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := kv.Open(dest, &kv.Options{ReadOnly: true})
	if errors.Is(err, kv.ErrNotExist) {
		return fmt.Errorf("%s is not empty, and no store", dest)
	}
	if err != nil {
		return err
	}
	there, err := hasKeys(db)
	if there {
		err = fmt.Errorf("%s is a store that has keys: import into a new directory", dest)
	}
	return errors.Join(err, db.Close())
}

func hasKeys(db *kv.DB) (bool, error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return false, err
	}
	there := it.First()
	return there, it.Close()
}

// build makes the sorted files.
func (im *importer) build(ctx context.Context) error {
	start := time.Now()
	m := im.meter("reading")
	var from []byte
	if n := len(im.dir.Files); n > 0 {
		im.say("%d files are there already: going on after %.64q", n, im.dir.Files[n-1].Last)
		from = append(bytes.Clone(im.dir.Files[n-1].Last), 0)
		m.begin(from)
	}
	store := im.store
	var summed *compare.Reading // all of the source; nil: it is not needed, or this run reads a part
	if im.Verify && from == nil {
		summed = &compare.Reading{Store: store}
		store = summed
	}
	err := build.Run(ctx, store, im.ranges(from), im.dir, build.Options{Writer: im.writer,
		FileSize: int64(im.FileSize) << 20, Threads: im.Threads, Progress: m.show})
	if err == nil {
		if summed != nil {
			all := summed.Side()
			im.read = &all
		}
		m.end()
		im.result.Reading = time.Since(start).Seconds()
		return im.unchanged()
	}
	m.stop()
	return err
}

// ranges cuts what the source has from a key on into what one goroutine reads at a time: small enough that all are busy
// to the end, and large enough that few files are small only because their range ends.
func (im *importer) ranges(from []byte) []source.Range {
	if im.Threads == 1 {
		return []source.Range{{From: from}}
	}
	file := int64(im.FileSize) << 20
	const forEach = 4 // goroutine
	size := im.store.Size() / int64(forEach*im.Threads)
	return source.Ranges(im.store, from, min(max(size, file), forEach*file))
}

// unchanged returns an error if somebody has written to the source meanwhile, whatever locks it heeds.
func (im *importer) unchanged() error {
	now, err := im.contents()
	if err == nil && now != im.dir.Header.Contents {
		err = fmt.Errorf("%s was changed while it was read: nothing is imported", im.Source)
	}
	return err
}

// with calls f with the new store.
func (im *importer) with(f func(db *kv.DB) error) error {
	started := im.dir.Header.Started
	db, err := kv.Open(string(im.Dest), &kv.Options{Filter: im.writer.Filter, Compression: im.writer.Compression,
		BlockSize: im.BlockSize, Clock: func() time.Time { return started }}) // nothing ends before it was compared
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// ingest takes the files into the store.
func (im *importer) ingest(ctx context.Context, db *kv.DB) error {
	start := time.Now()
	if done, err := hasKeys(db); err != nil {
		return err
	} else if done {
		return im.dir.Reach(work.Ingested) // the run before was ended just then
	}
	// What was written is read and compared afterwards.
	if err := db.Ingest(ctx, im.dir.Paths(), &kv.IngestOptions{Link: true, SkipVerify: im.Verify}); err != nil {
		return err
	}
	im.result.Ingesting = time.Since(start).Seconds()
	return im.dir.Reach(work.Ingested)
}

// verify compares the two stores. The source has been read, unless another run has read some of it.
func (im *importer) verify(ctx context.Context, db *kv.DB) error {
	start := time.Now()
	m := im.meter("comparing")
	dest := destination{db}
	inputs := []compare.Input{{Scanner: dest, Ranges: im.dir.Ranges()}}
	if im.read == nil {
		inputs = append(inputs, compare.Input{Scanner: im.store, Ranges: im.ranges(nil)})
	}
	inputs[len(inputs)-1].Progress = m.show // it asks the source: while that is scanned, only its visitor may
	sides, err := compare.Read(ctx, im.Threads, inputs...)
	if err == nil && im.read == nil {
		im.read, err = &sides[1], im.store.Check()
	}
	if err != nil {
		m.stop()
		if errors.Is(err, kv.ErrCorruption) { // source.ErrDamaged is another
			err = fmt.Errorf("%w: %w", errDiffers, err)
		}
		return err
	}
	m.end()
	im.result.Verifying = time.Since(start).Seconds()
	im.result.Source, im.result.Dest = im.read, &sides[0]
	if *im.read == sides[0] {
		return nil
	}
	where, err := compare.Difference(ctx, im.store, dest)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %d keys, digest %016x; %s has %d keys, digest %016x; %s", errDiffers, im.read.Keys,
		im.read.Digest, im.Dest, sides[0].Keys, sides[0].Digest, cmp.Or(where, "read again, they are the same"))
}

// A destination is the new store as it is compared.
type destination struct{ db *kv.DB }

// Scan implements compare.Scanner.
func (d destination) Scan(r source.Range, visit source.Visitor) error {
	it, err := d.db.NewIter(&kv.IterOptions{LowerBound: r.From, UpperBound: r.To})
	if err != nil {
		return err
	}
	var e source.Entry
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		e.Key, e.Value, e.Expiry = it.Key(), it.Value(), it.Expiry()
		err = visit(&e)
	}
	return errors.Join(err, it.Close())
}
