package kv

import (
	"context"
	"errors"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/ingest"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// IngestOptions are the choices of Ingest. The zero value is the safe one.
type IngestOptions struct {
	// Link links the files into the store's directory where the file system can, in place of copying them. A linked
	// file must never be written to again, not even under a new content: the store's file and the one at its path
	// are the same. A program that writes its next file under another name, or removes the path first, may set it.
	Link bool

	// SkipVerify reads no more of a file than its footer, index, filter and range tombstones. Its blocks are then taken
	// on trust: the caller vouches that the file was written whole, and that its keys and values are within MaxKeySize
	// and MaxValueSize.
	SkipVerify bool
}

// Ingest takes sorted files into the store. All of their writes take effect at one moment, as those of a batch do, and
// are later than every write before the call. The files were written by [sstable.Writer] with Set, SetUntil, Delete
// and DeleteRange. Merge operands are refused with ErrNotIngestible, and so are tables of a store that refer to blob
// files. Values of any size are in the files; large ones go to blob files when a compaction rewrites them. The files
// may come in any order, and must not overlap each other. Within a file, DeleteRange hides what the store has and
// nothing of the file.
//
// Every byte of the files is checked first. They are then copied into the store's directory, or linked if
// IngestOptions.Link is set; those at the paths stay. When Ingest returns, the writes are on stable storage. After an
// error or a crash the store has all of the files or none.
//
// An ingest flushes memtables first, and holds up writes while it flushes what was written meanwhile.
//
// The options may be nil. When ctx ends, Ingest takes nothing in and returns an error that matches ctx.Err().
func (d *DB) Ingest(ctx context.Context, paths []string, o *IngestOptions) error {
	if err := d.writable(); err != nil {
		return err
	}
	if o == nil {
		o = &IngestOptions{}
	}
	in := newIngest(ctx, d, o)
	if err := in.begin(); err != nil {
		return err
	}
	defer in.end()
	err := in.run(paths)
	if err != nil && in.submitted {
		return err // the manifest may name the files
	}
	if err == nil {
		in.files.Settle()
	} else {
		in.files.TakeBack()
	}
	return err
}

// An ingestJob is one call of Ingest.
type ingestJob struct {
	d         *DB
	ctx       context.Context
	files     ingest.Batch
	reserved  []*compaction.Reservation // where the files are being placed
	submitted bool                      // the manifest may name the files
}

func newIngest(ctx context.Context, d *DB, o *IngestOptions) *ingestJob {
	in := &ingestJob{d: d, ctx: ctx}
	in.files.Options = ingest.Options{Source: d.fs, FS: d.fs, Dir: d.dir, Log: d.log, Filter: d.opts.Filter,
		Prefix: d.opts.Prefix, RangeFilter: d.opts.RangeFilter, Copy: !o.Link, SkipVerify: o.SkipVerify,
		Interrupted: func() error { return d.interrupted(ctx, "an ingest was broken off") },
		CheckEntry:  func(key, value []byte) error { return errors.Join(checkKey(key), checkValue(value)) }}
	if d.opts.InMemory {
		in.files.Source = vfs.OS
	}
	return in
}

// begin makes Close wait for the ingest: it must not leave a file in a directory that another store has by then.
func (in *ingestJob) begin() error {
	in.d.mu.Lock()
	defer in.d.mu.Unlock()
	if in.d.closing {
		return ErrClosed
	}
	in.d.ingesting++
	in.d.compactions.Rest.Flushing(time.Now())
	return nil
}

// end lets Close go on, and compactions write again where the files were placed.
func (in *ingestJob) end() {
	in.d.reschedule(func() {
		in.d.ingesting--
		in.d.compactions.Rest.Busy(time.Now())
		for _, r := range in.reserved {
			in.d.compactions.Release(r)
		}
	})
}

func (in *ingestJob) run(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	last := in.d.nextFile.Add(uint64(len(paths))) - 1
	numbers := manifest.Ingest{First: last - uint64(len(paths)) + 1, Last: last}
	if err := in.files.Bring(paths, numbers); err != nil || len(in.files.Files) == 0 {
		return err
	}
	// Most of what is in memory goes to disk while writes go on.
	if err := in.d.Flush(in.ctx); err != nil {
		return err
	}
	if err := in.files.Interrupted(); err != nil {
		return err
	}
	return in.d.commits.Exclusive(in.ctx, in.install)
}

// install gives the files a sequence number and makes them visible. It runs between groups of the commit pipeline.
// Tables hold a prefix of history, and memtables what follows: so everything before goes to tables first.
func (in *ingestJob) install() error {
	d := in.d
	if err := in.flushHeld(); err != nil {
		return err
	}
	seq := d.commits.NextSeq()
	var used manifest.Features
	err := d.applyEdit(func() *manifest.Edit {
		in.submitted = true
		e := in.place(seq)
		used = e.Features
		return e
	}, func() {
		d.features |= used
		// Later writes go to a memtable that no older state has. A reader with such
		// a state, whatever it takes for the present, is in the past.
		d.mem = d.nextMemTable(0, d.mem.Log)
		// The number comes after the state: a reader that knows it finds the files.
		d.installState()
		d.visible.Store(uint64(seq))
		d.commits.Watch.Notify()
	})
	if err == nil {
		in.count(seq)
	}
	return err
}

// flushHeld flushes all memtables. The caller leads the pipeline, so that no more come, and the log cannot fail any
// more. If it has not failed until now, the log holds nothing that is in no memtable.
func (in *ingestJob) flushHeld() error {
	d := in.d
	defer broadcastAt(in.ctx, &d.progress)()
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		switch err := in.files.Interrupted(); {
		case d.failure != nil:
			return d.failure
		case err != nil:
			return err
		case d.mem.Empty() && len(d.imms) == 0:
			return nil
		case !d.mem.Empty() && len(d.imms)+1 < d.opts.MaxMemtables:
			if err := d.rotateTo(0, nil); err != nil {
				return err
			}
		default:
			d.scheduleFlush()
			d.progress.Wait()
		}
	}
}

func (in *ingestJob) count(seq base.SeqNum) {
	c, bytes := &in.d.counters, int64(0)
	for _, f := range in.files.Files {
		bytes += f.Table.Size
	}
	c.Ingests.Add(1)
	c.IngestedFiles.Add(uint64(len(in.files.Files)))
	c.IngestedBytes.Add(uint64(bytes))
	in.d.log.Debug("ingested", "files", len(in.files.Files), "bytes", bytes, "sequence", uint64(seq))
}

// place returns the edit that adds the files, each to the lowest level where it fits, and keeps compactions from
// writing there until end. It is called with the locks of a version edit held.
func (in *ingestJob) place(seq base.SeqNum) *manifest.Edit {
	d := in.d
	e, pick := &manifest.Edit{LastSeq: seq}, d.compactionInput(d.current)
	for _, f := range in.files.Files {
		t := f.Table
		t.Seq, t.SmallestSeq, t.LargestSeq = seq, seq, seq
		s := version.Span{Lo: t.Smallest, Hi: t.UpperBound()}
		level := pick.IngestLevel(s)
		in.reserved = append(in.reserved, d.compactions.Reserve(level, s))
		a := manifest.AddedTable{Level: level, Table: t} // in level 0 a run
		if level > 0 {
			a.Run = d.current.Levels[level].NewestRun()
		}
		if len(d.current.OlderThan(level, a.Run, s)) > 0 {
			a.Table.Garbage.HiddenBytes = averageHidden(d.current, t.Entries)
		}
		e.Added = append(e.Added, a)
		e.Features |= featuresOf(&t)
	}
	if d.slots.Active() {
		p := manifest.KeptPart{Last: seq, Time: keptNow()}
		for _, f := range in.files.Files {
			p.Files, p.Bytes = append(p.Files, f.Table.Num), p.Bytes+f.Table.Size
		}
		e.Slots.Parts = append(e.Slots.Parts, p)
	}
	return e
}

// averageHidden estimates how many bytes n entries hide, without lookups: it assumes that what is under them is as the
// average of the oldest run.
func averageHidden(v *version.Version, n uint64) uint64 {
	if len(v.Runs) == 0 {
		return 0
	}
	oldest := v.Runs[len(v.Runs)-1].Totals()
	return uint64(float64(n) * float64(oldest.BlobBytes) / max(float64(oldest.Entries), 1))
}
