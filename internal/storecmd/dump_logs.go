package storecmd

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// logID returns the number of a log: its name's, or its header's if the file has
// another name.
func logID(name string, f vfs.ReadFile) uint64 {
	if kind, num := manifest.ParseFileName(filepath.Base(name)); kind == manifest.FileWAL ||
		kind == manifest.FileManifest {
		return num
	}
	var header [24]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(header[16:])
}

// dumpLog calls f with every record of a log that checks out, past damage too, and prints
// how the log ends. An error of f that matches base.ErrCorruption is damage; one of the file
// system ends the dump.
func (p *program) dumpLog(ctx context.Context, from cli.File, f func(offset int64, record []byte) error) (err error) {
	file, path, err := p.openFile(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return err
	}
	records := 0
	var faults []error
	damage := func(err error) error {
		if wal.Broken(err) {
			faults = append(faults, err)
			return nil
		}
		return err
	}
	r := wal.NewReader(file, path, logID(path, file))
	left, err := survey.Records(r, func(offset int64, record []byte) error {
		records++
		return damage(f(offset, record))
	}, damage)
	if err = cmp.Or(err, left); err != nil {
		return err
	}
	if err := p.row("end", nil,
		object{"bytes", size, "closed", r.Clean(), "records", records, "skipped", r.Skipped()}); err != nil {
		return err
	}
	return p.printFaults(faults)
}

// location returns the name of a file as it may be printed.
func location(f cli.File) string { return cli.RedactURL(string(f)) }

func damaged(path string, offset int64, what string, cause error) error {
	return &base.CorruptionError{File: path, Offset: offset, What: what, Cause: cause}
}

type dumpWALCommand struct {
	File cli.File `arg:"" help:"A write-ahead log: 000012.wal, or s3://BUCKET/PREFIX/000012.wal."`
}

// Run prints a line per write: offset of its record, sequence number, kind, key,
// value.
func (c *dumpWALCommand) Run(ctx context.Context, p *program) error {
	return p.dumpLog(ctx, c.File, func(offset int64, record []byte) error {
		for e, err := range batchrepr.All(record) {
			value := e.Value
			if err == nil && e.Key.Kind() == base.KindRangeDelete {
				value, err = rangedel.DecodeEnd(value)
			}
			if err != nil {
				return damaged(location(c.File), offset, "a record of the log", err)
			}
			if err := p.printEntry(ctx, offset, e.Key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

type dumpManifestCommand struct {
	File cli.File `arg:"" help:"A manifest: MANIFEST-000007, or s3://BUCKET/PREFIX/MANIFEST-000007."`
}

func (c *dumpManifestCommand) Run(ctx context.Context, p *program) error {
	return p.dumpLog(ctx, c.File, func(offset int64, record []byte) error {
		e, err := manifest.DecodeEdit(record)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, manifest.ErrNewerFormat):
			return err
		case err != nil:
			return damaged(location(c.File), offset, "a version edit", err)
		}
		return p.row("edit", object{"offset", offset}, p.describeEdit(e))
	})
}

// describeEdit has what a version edit says. A largest key that is null is no bound.
func (p *program) describeEdit(e *manifest.Edit) object {
	deleted, added := []object{}, []object{}
	for _, d := range e.Deleted {
		deleted = append(deleted, object{"level", d.Level, "num", d.Num})
	}
	for _, a := range e.Added {
		t := &a.Table
		var refs []object
		for _, r := range t.Blobs {
			refs = append(refs, object{"num", r.Num, "records", r.Records, "bytes", r.Bytes})
		}
		added = append(added, object{"level", a.Level, "run", present(a.Run), "num", t.Num, "id", keytext.ID(t.ID),
			"bytes", t.Size, "entries", t.Entries, "smallest_seq", t.SmallestSeq, "largest_seq", t.LargestSeq,
			"smallest", p.keyBound(t.Smallest), "largest", p.keyBound(t.Largest),
			"largest_exclusive", present(t.LargestExclusive)})
		if len(refs) > 0 {
			added[len(added)-1] = append(added[len(added)-1], "blobs", refs)
		}
	}
	addedBlobs := []object{}
	for _, b := range e.AddedBlobs {
		addedBlobs = append(addedBlobs, object{"num", b.Num, "id", keytext.ID(b.ID), "bytes", b.Size,
			"records", b.Records, "value_bytes", b.ValueBytes})
	}
	o := object{"store_id", keytext.ID(e.StoreID), "next_file", e.NextFile, "log_num", e.LogNum, "last_seq", e.LastSeq,
		"restored_id", present(keytext.ID(e.Restored)), "closed_seq", present(e.Closed)}
	if len(e.AddedBlobs)+len(e.DeletedBlobs) > 0 {
		o = append(o, "deleted_blobs", append([]uint64{}, e.DeletedBlobs...), "added_blobs", addedBlobs)
	}
	return append(o, "deleted", deleted, "added", added)
}
