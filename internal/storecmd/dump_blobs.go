package storecmd

import (
	"context"
	"errors"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
)

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
	if err := p.row("properties", nil, object{"id", keytext.ID(info.ID), "bytes", info.Size, "records", info.Records,
		"key_bytes", info.KeyBytes, "value_bytes", info.ValueBytes}); err != nil {
		return err
	}
	return p.printFaults(d.faults)
}

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
	row := object{"offset", h.Offset, "seq", uint64(rec.Seq), "key", d.formatted(rec.Key)}
	if d.values {
		row = append(row, "value", d.formatted(d.value))
	}
	return d.row("record", append(row, "data", object{"stored_bytes", h.Length, "bytes", rec.Size,
		"compression", rec.Compression.String(), "expiry", moment(rec.Expiry)}), nil)
}
