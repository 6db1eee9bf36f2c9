package kv

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// IngestOptions are the choices of IngestContext. The zero value is the safe one.
type IngestOptions struct {
	// Copy copies the files where linking them would do. A linked file must never
	// be written to again: the store's file and the one at its path are the same.
	Copy bool

	// SkipVerify reads no more of a file than its footer, index, filter and range
	// tombstones. What its blocks hold is then taken on trust: whoever wrote the
	// file vouches that it was written whole, and that its keys and values are
	// within MaxKeySize and MaxValueSize.
	SkipVerify bool
}

// Ingest takes sorted files into the store: all of their writes take effect at one
// moment, as those of a batch do, and are later than every write before the call.
// The files were written by [sstable.Writer] with Set, Delete and DeleteRange: merge
// operands and values that expire are refused with ErrNotIngestible. The files may come
// in any order, and must not overlap each other. Within a file, DeleteRange hides what
// the store has and nothing of the file.
//
// Every byte of the files is checked first. They are then linked into the store's
// directory where the file system can, and copied otherwise; those at the paths
// stay, and must not be written to again (IngestOptions.Copy lifts that). When
// Ingest returns, the writes are on stable storage. After an error or a crash the
// store has all of the files or none.
//
// An ingest flushes memtables first, and holds up writes while it flushes what was
// written meanwhile.
func (d *DB) Ingest(paths []string) error {
	return d.IngestContext(context.Background(), paths, nil)
}

// IngestContext is Ingest with options, which may be nil, for a caller who waits no
// longer than ctx lasts: the error then matches ctx.Err() and nothing was taken in.
func (d *DB) IngestContext(ctx context.Context, paths []string, o *IngestOptions) error {
	if err := d.writable(); err != nil {
		return err
	}
	in := &ingest{d: d, ctx: ctx}
	if o != nil {
		in.opts = *o
	}
	if err := in.begin(); err != nil {
		return err
	}
	defer in.end()
	err := in.run(paths)
	if err != nil && in.submitted {
		return err // the manifest may name the files
	}
	if err == nil || in.takeBack() {
		in.settled()
	}
	return err
}

// An ingest is one call of Ingest.
type ingest struct {
	d    *DB
	ctx  context.Context
	opts IngestOptions

	numbers   manifest.Ingest // of the files
	announced bool            // they stand in a file's name
	brought   []uint64        // numbers of the files in the directory
	files     []ingestedFile  // those with anything in them
	reserved  []*reservation  // where they are being placed
	submitted bool            // the manifest may name the files
}

// An ingestedFile is a file on its way into the store.
type ingestedFile struct {
	path  string // where it came from
	table manifest.Table
}

// begin makes Close wait for the ingest: it must not leave a file in a directory
// that is somebody else's by then.
func (in *ingest) begin() error {
	in.d.mu.Lock()
	defer in.d.mu.Unlock()
	if in.d.closing {
		return ErrClosed
	}
	in.d.ingesting++
	return nil
}

func (in *ingest) end() {
	in.d.mu.Lock()
	in.d.ingesting--
	in.d.mu.Unlock()
	in.d.progress.Broadcast()
	in.d.scheduleCompactions()
}

// interrupted returns an error if the ingest should go no further.
func (in *ingest) interrupted() error {
	if in.d.closed.Load() {
		return ErrClosed
	}
	if in.ctx.Err() != nil {
		return givenUp(in.ctx, "an ingest was broken off")
	}
	return nil
}

func (in *ingest) run(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if err := in.announce(len(paths)); err != nil {
		return err
	}
	for i, path := range paths {
		if err := in.bring(path, in.numbers.First+uint64(i)); err != nil {
			return err
		}
	}
	if err := in.sort(); err != nil || len(in.files) == 0 {
		return err
	}
	if err := in.d.fs.SyncDir(in.d.dir); err != nil {
		return err
	}
	// Most of what is in memory goes to disk while writes go on.
	if err := in.d.FlushContext(in.ctx); err != nil {
		return err
	}
	if err := in.interrupted(); err != nil {
		return err
	}
	return in.d.commits.exclusiveContext(in.ctx, in.d, in.install)
}

// sort puts the files into key order, and refuses files that overlap.
func (in *ingest) sort() error {
	slices.SortFunc(in.files, func(a, b ingestedFile) int { return bytes.Compare(a.table.Smallest, b.table.Smallest) })
	for i := 1; i < len(in.files); i++ {
		a, b := &in.files[i-1], &in.files[i]
		if !a.table.Before(b.table.Smallest) {
			return fmt.Errorf("%w: %s and %s overlap at %.64q; ingest them one after the other, the older one first",
				ErrNotIngestible, a.path, b.path, b.table.Smallest)
		}
	}
	return nil
}

// install gives the files a sequence number and makes them visible. It runs between
// groups of the commit pipeline. Tables hold a prefix of history, and memtables what
// follows: so everything before goes to tables first.
func (in *ingest) install() error {
	d := in.d
	if err := in.flushHeld(); err != nil {
		return err
	}
	d.commits.seq++
	seq := d.commits.seq
	defer in.unreserve()
	err := d.applyEdit(func() *manifest.Edit {
		in.submitted = true
		return in.place(seq)
	}, func() {
		// Writes from now on go to a memtable that no older state has: a reader
		// with such a state, whatever it takes for the present, is in the past.
		d.mem = newMemTable(d.opts.memtableArena(), d.mem.log)
		// The number comes behind the state: who knows it finds the files.
		d.installState()
		d.visible.Store(uint64(seq))
	})
	if err == nil {
		in.count(seq)
	}
	return err
}

// flushHeld flushes all memtables. The caller leads the pipeline, so that there is
// an end to them, and to failures of the log: if there has been none until now, the log
// holds nothing that is in no memtable.
func (in *ingest) flushHeld() error {
	d := in.d
	defer d.broadcastAt(in.ctx)()
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		switch err := in.interrupted(); {
		case d.failure != nil:
			return d.failure
		case err != nil:
			return err
		case d.mem.empty() && len(d.imms) == 0:
			return nil
		case !d.mem.empty() && len(d.imms)+1 < d.opts.MaxMemtables:
			if err := d.rotate(0); err != nil {
				return err
			}
		default:
			d.scheduleFlush()
			d.progress.Wait()
		}
	}
}

func (in *ingest) count(seq base.SeqNum) {
	c, bytes := &in.d.counters, int64(0)
	for _, f := range in.files {
		bytes += f.table.Size
	}
	c.ingests.Add(1)
	c.ingestedFiles.Add(uint64(len(in.files)))
	c.ingestedBytes.Add(uint64(bytes))
	in.d.log.Debug("ingested", "files", len(in.files), "bytes", bytes, "sequence", uint64(seq))
}

// takeBack removes the files that were brought in, and reports whether they are gone
// for good.
func (in *ingest) takeBack() bool {
	gone := true
	for _, num := range in.brought {
		gone = in.d.removeTable(num) && gone
	}
	return gone && in.d.fs.SyncDir(in.d.dir) == nil
}
