package main

import "github.com/siftkv/siftkv/internal/doctor/dump"

// dumpWALCommand is the command line of siftkv dump-wal.
type dumpWALCommand struct {
	File string `arg:"" help:"A write-ahead log, such as 000012.wal."`
}

// Run prints a line per write: offset of its record, sequence number, kind, key,
// value.
func (c *dumpWALCommand) Run(p *program) error {
	end, err := dump.WAL(c.File, func(offset int64, e dump.Entry) error { return p.printEntry(&offset, &e) })
	if err != nil {
		return err
	}
	return p.printEnd(end)
}
