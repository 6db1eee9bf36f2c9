package main

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/doctor/dump"
	"github.com/siftkv/siftkv/internal/doctor/keytext"
	"github.com/siftkv/siftkv/sstable"
)

// dumpSSTableCommand is the command line of siftkv dump-sstable.
type dumpSSTableCommand struct {
	File      string `arg:"" help:"A sorted file, such as 000012.sst."`
	NoEntries bool   `help:"Print the properties alone; all blocks are checked nevertheless."`
}

// Run prints entries as they come, then the properties and what is damaged.
func (c *dumpSSTableCommand) Run(p *program) error {
	s, err := dump.SSTable(c.File, func(e dump.Entry) error {
		if c.NoEntries {
			return nil
		}
		return p.printEntry(nil, &e)
	})
	if err != nil {
		return err
	}
	if err := p.printProperties(s); err != nil {
		return err
	}
	faults := s.Tail
	for _, g := range s.Gaps {
		faults = append(faults, fmt.Errorf("%d bytes at offset %d: %s: keys from %s to %s may be missing", g.Length, g.Offset, g.What, p.bound(g.After, "the first"), p.bound(g.Before, "the last")))
	}
	return p.printFaults(faults)
}

func (p *program) bound(key []byte, none string) string {
	if key == nil {
		return none
	}
	return p.KeyFormat.String(key)
}

func (p *program) printProperties(s *sstable.Salvage) error {
	if s.Properties == nil {
		return nil
	}
	f := s.Properties
	if p.JSON {
		return p.printJSON(item{Type: "properties", Data: struct {
			ID                uint64
			Smallest, Largest keytext.Bytes
			*sstable.Properties
		}{s.ID, f.Smallest, f.Largest, f}}, false)
	}
	filter := "none"
	if f.FilterFamily != "" {
		filter = fmt.Sprintf("%s, %d bytes for %d keys", f.FilterPolicy, f.FilterBytes, f.FilterKeys)
	}
	return p.printf("# id %016x; %d entries (%d deletes), %d range deletes; keys %s to %s; sequence numbers %d to %d\n"+
		"# %d data blocks of %d bytes (%s); index %d bytes; filter %s\n",
		s.ID, f.Entries, f.Deletes, f.RangeDeletes, p.KeyFormat.String(f.Smallest), p.KeyFormat.String(f.Largest), f.SmallestSeq, f.LargestSeq,
		f.DataBlocks, f.DataBytes, f.Compression, f.IndexBytes, filter)
}
