package main

import (
	"context"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/doctor/dump"
)

// dumpWALCommand is the command line of siftkv dump-wal.
type dumpWALCommand struct {
	File cli.File `arg:"" help:"A write-ahead log, such as 000012.wal."`
}

// Run prints a line per write: offset of its record, sequence number, kind, key,
// value.
func (c *dumpWALCommand) Run(ctx context.Context, p *program) error {
	end, err := dump.WAL(string(c.File), func(offset int64, e dump.Entry) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return p.printEntry(&offset, &e)
	})
	if err != nil {
		return err
	}
	return p.printEnd(end)
}
