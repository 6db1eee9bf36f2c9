package main

import (
	"context"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/doctor/dump"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/sstable"
)

// dumpSSTableCommand is the command line of siftkv dump-sstable.
type dumpSSTableCommand struct {
	File      cli.File `arg:"" help:"A sorted file, such as 000012.sst."`
	NoEntries bool     `help:"Print the properties alone; all blocks are checked nevertheless."`
}

// Run prints entries as they come, then the properties and what is damaged.
func (c *dumpSSTableCommand) Run(ctx context.Context, p *program) error {
	s, err := dump.SSTable(string(c.File), func(e dump.Entry) error {
		if c.NoEntries || ctx.Err() != nil {
			return ctx.Err()
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
		faults = append(faults, fmt.Errorf("%d bytes at offset %d: %s: keys from %s to %s may be missing", g.Length,
			g.Offset, g.What, p.bound(g.After, "the first"), p.bound(g.Before, "the last")))
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
		return p.printJSON(item{Type: "properties", Data: describeProperties(s.ID, f)}, false)
	}
	filter := "none"
	if f.FilterFamily != "" {
		filter = fmt.Sprintf("%s, %d bytes for %d keys", f.FilterPolicy, f.FilterBytes, f.FilterKeys)
	}
	return p.printf("# id %016x; %d entries (%d deletes), %d range deletes; keys %s to %s; sequence numbers %d to %d\n"+
		"# %d data blocks of %d bytes (%s); index %d bytes; filter %s\n",
		s.ID, f.Entries, f.Deletes, f.RangeDeletes, p.KeyFormat.String(f.Smallest), p.KeyFormat.String(f.Largest),
		f.SmallestSeq, f.LargestSeq,
		f.DataBlocks, f.DataBytes, f.Compression, f.IndexBytes, filter)
}

// A propertiesItem is the properties of a sorted file in JSON.
type propertiesItem struct {
	ID           keytext.ID    `json:"id"`
	Smallest     keytext.Bytes `json:"smallest"` // keys; null: there are no point entries
	Largest      keytext.Bytes `json:"largest"`
	SmallestSeq  uint64        `json:"smallest_seq"`
	LargestSeq   uint64        `json:"largest_seq"`
	Entries      uint64        `json:"entries"`
	Deletes      uint64        `json:"deletes"`
	RangeDeletes uint64        `json:"range_deletes"`
	Merges       uint64        `json:"merges"`
	Merger       string        `json:"merger"`
	Expiring     uint64        `json:"expiring"`
	LastExpiry   string        `json:"last_expiry,omitempty"` // a time
	// times at which an eighth after the other has expired
	ExpiryOctiles   []string `json:"expiry_octiles,omitempty"`
	Overwritten     uint64   `json:"overwritten"`
	RawKeyBytes     uint64   `json:"raw_key_bytes"`
	RawValueBytes   uint64   `json:"raw_value_bytes"`
	DataBytes       uint64   `json:"data_bytes"`
	DataBlocks      uint64   `json:"data_blocks"`
	Compression     string   `json:"compression"`
	BlockSize       uint64   `json:"block_size"`
	RestartInterval uint64   `json:"restart_interval"`
	IndexBytes      uint64   `json:"index_bytes"`
	IndexLeaves     uint64   `json:"index_leaves"`
	FilterBytes     uint64   `json:"filter_bytes"`
	FilterKeys      uint64   `json:"filter_keys"`
	FilterFamily    string   `json:"filter_family"`
	FilterPolicy    string   `json:"filter_policy"`
	FilterPrefix    string   `json:"filter_prefix"`
	PrefixOnly      bool     `json:"prefix_only"`
}

func describeProperties(id uint64, f *sstable.Properties) *propertiesItem {
	it := &propertiesItem{
		ID: keytext.ID(id), Smallest: f.Smallest, Largest: f.Largest, SmallestSeq: uint64(f.SmallestSeq),
		LargestSeq: uint64(f.LargestSeq),
		Entries:    f.Entries, Deletes: f.Deletes, RangeDeletes: f.RangeDeletes, Merges: f.Merges, Merger: f.Merger,
		Expiring: f.Expiring, Overwritten: f.Overwritten,
		RawKeyBytes: f.RawKeyBytes, RawValueBytes: f.RawValueBytes, DataBytes: f.DataBytes, DataBlocks: f.DataBlocks,
		Compression: f.Compression.String(), BlockSize: f.BlockSize, RestartInterval: f.RestartInterval,
		IndexBytes: f.IndexBytes, IndexLeaves: f.IndexLeaves, FilterBytes: f.FilterBytes, FilterKeys: f.FilterKeys,
		FilterFamily: f.FilterFamily, FilterPolicy: f.FilterPolicy, FilterPrefix: f.FilterPrefix,
		PrefixOnly: f.PrefixOnly,
	}
	if f.Expiring > 0 {
		it.LastExpiry = moment(f.LastExpiry)
	}
	if f.ExpiryOctiles != (sstable.Octiles{}) {
		for _, o := range f.ExpiryOctiles {
			it.ExpiryOctiles = append(it.ExpiryOctiles, moment(o))
		}
	}
	return it
}

// moment is the text of a time in microseconds since 1970.
func moment(micros uint64) string {
	return time.UnixMicro(int64(micros)).UTC().Format(time.RFC3339Nano)
}
