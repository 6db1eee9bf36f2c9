package storecmd

import (
	"context"
	"errors"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
)

// printHandle prints an entry with a blob value: the place instead of the value. Offset is that of its record in a log;
// nil: it is in none.
func (p *program) printHandle(offset *int64, k base.InternalKey, h blob.Handle, expiry uint64) error {
	file := manifest.FileName(manifest.FileBlob, h.File)
	if p.JSON {
		at := object{"file", file, "record", h.Ordinal, "offset", h.Offset, "stored_bytes", h.Length, "bytes", h.Size}
		if expiry != 0 {
			at = append(at, "expiry", moment(expiry))
		}
		seq := uint64(k.SeqNum())
		p.printJSON(item{Type: "entry", Offset: offset, Seq: &seq, Kind: k.Kind().String(),
			Key: p.KeyFormat.JSON(k.User), Apart: at})
		return p.printed()
	}
	if offset != nil {
		p.printf("%d\t", *offset)
	}
	p.printf("%d\t%s\t%s\t%d bytes, record %d of %s: %d bytes at offset %d", k.SeqNum(), k.Kind(),
		p.KeyFormat.String(k.User), h.Size, h.Ordinal, file, h.Length, h.Offset)
	if expiry != 0 {
		p.printf("; until %s", moment(expiry))
	}
	p.printf("\n")
	return p.printed()
}

// printBlobRefs prints what a sorted file refers to in blob files.
func (p *program) printBlobRefs(f *sstable.Properties) {
	for _, r := range f.Blobs {
		p.printf("# %d values in %d bytes of %s, id %016x\n", r.Records, r.Bytes,
			manifest.FileName(manifest.FileBlob, r.Num), r.ID)
	}
}

func describeBlobRefs(f *sstable.Properties) []object {
	all := []object{}
	for _, r := range f.Blobs {
		all = append(all, object{"num", r.Num, "id", keytext.ID(r.ID), "records", r.Records, "bytes", r.Bytes})
	}
	return all
}

// describeBlobFiles is what an edit says of blob files, in JSON.
func describeBlobFiles(e *manifest.Edit) object {
	added := []object{}
	for _, b := range e.AddedBlobs {
		added = append(added, object{"num", b.Num, "id", keytext.ID(b.ID), "bytes", b.Size, "records", b.Records,
			"value_bytes", b.ValueBytes})
	}
	return object{"deleted_blobs", append([]uint64{}, e.DeletedBlobs...), "added_blobs", added}
}

// printBlobFiles prints what an edit says of blob files.
func (p *program) printBlobFiles(e *manifest.Edit) {
	for _, num := range e.DeletedBlobs {
		p.printf("\t- %s\n", manifest.FileName(manifest.FileBlob, num))
	}
	for _, b := range e.AddedBlobs {
		p.printf("\t+ %s\t%d bytes, %d values of %d bytes, id %016x\n", b.Name(), b.Size, b.Records, b.ValueBytes, b.ID)
	}
}

type dumpBlobCommand struct {
	File   cli.File `arg:"" help:"A blob file: 000014.blob, or s3://BUCKET/PREFIX/000014.blob."`
	Values bool     `help:"Print the values too; all are checked nevertheless."`
}

// Run prints a line for each value: offset of its record, sequence number, key, length and expiry.
func (c *dumpBlobCommand) Run(ctx context.Context, p *program) (err error) {
	file, name, err := p.openFile(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return err
	}
	info, err := blob.ReadInfo(file, size, name)
	if err != nil {
		return err
	}
	r, err := blob.NewReader(struct{ io.ReaderAt }{file}, size, blob.ReaderOptions{Name: name, ID: info.ID})
	if err != nil {
		return err
	}
	s, err := blob.NewScanner(r)
	if err != nil {
		return err
	}
	d := blobDump{program: p, values: c.Values}
	if err := errors.Join(d.records(ctx, s), failureOf(file)); err != nil {
		return err
	}
	switch {
	case p.JSON:
		p.printJSON(item{Type: "properties", Data: object{"id", keytext.ID(info.ID), "bytes", info.Size,
			"records", info.Records, "key_bytes", info.KeyBytes, "value_bytes", info.ValueBytes}})
	default:
		p.printf("# id %016x; %d values of %d bytes, keys of %d bytes\n", info.ID, info.Records, info.ValueBytes,
			info.KeyBytes)
	}
	return p.printFaults(d.faults)
}

// A blobDump is one run of the command.
type blobDump struct {
	*program
	values bool
	value  []byte
	faults []error
}

// records prints all records that check out, and notes damage.
func (d *blobDump) records(ctx context.Context, s *blob.Scanner) error {
	for ctx.Err() == nil {
		on := s.Next()
		if err := s.Err(); err != nil {
			if err := d.fault(err); err != nil {
				return err
			}
			on = s.Skip()
			if err := s.Err(); !on && err != nil {
				return d.fault(err)
			}
		}
		if !on {
			return nil
		}
		if err := d.record(s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fault notes damage, and returns any other error.
func (d *blobDump) fault(err error) error {
	if !errors.Is(err, base.ErrCorruption) {
		return err
	}
	d.faults = append(d.faults, err)
	return nil
}

// record prints a record if its value checks out.
func (d *blobDump) record(s *blob.Scanner) (err error) {
	rec, h := s.Record(), s.Handle(1)
	if d.values {
		d.value, err = s.Value(d.value[:0])
	} else {
		err = s.Check()
	}
	if err != nil {
		return d.fault(err)
	}
	if d.JSON {
		seq := uint64(rec.Seq)
		it := item{Type: "record", Offset: &h.Offset, Seq: &seq, Key: d.KeyFormat.JSON(rec.Key)}
		at := object{"stored_bytes", h.Length, "bytes", rec.Size, "compression", rec.Compression.String()}
		if rec.Expiry != 0 {
			at = append(at, "expiry", moment(rec.Expiry))
		}
		if it.Data = at; d.values {
			it.Value = d.KeyFormat.JSON(d.value)
		}
		d.printJSON(it)
		return d.printed()
	}
	d.printf("%d\t%d\t%s\t%d bytes, %s, stored in %d", h.Offset, rec.Seq, d.KeyFormat.String(rec.Key), rec.Size,
		rec.Compression, h.Length)
	if rec.Expiry != 0 {
		d.printf("; until %s", moment(rec.Expiry))
	}
	if d.values {
		d.printf("\t%s", d.KeyFormat.String(d.value))
	}
	d.printf("\n")
	return d.printed()
}
