package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/doctor/dump"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
)

// An item is a line of a dump in JSON. Every line has a type: entry, edit,
// properties, damage or end.
type item struct {
	Type   string  `json:"type"`
	Offset *int64  `json:"offset,omitempty"`
	Seq    *uint64 `json:"seq,omitempty"`
	Kind   string  `json:"kind,omitempty"`
	Key    any     `json:"key,omitempty"`
	Value  any     `json:"value,omitempty"`
	End    any     `json:"end,omitempty"` // of a range delete; absent: no bound
	What   string  `json:"what,omitempty"`
	Data   any     `json:"data,omitempty"`
}

// printEntry prints one version or tombstone.
func (p *program) printEntry(offset *int64, e *dump.Entry) error {
	if p.JSON {
		it := item{Type: "entry", Offset: offset, Seq: &e.Seq, Kind: e.Kind, Key: p.KeyFormat.JSON(e.Key)}
		switch {
		case !e.HasValue():
		case e.Kind == "range-delete":
			it.End = p.KeyFormat.JSON(e.Value)
		default:
			it.Value = p.KeyFormat.JSON(e.Value)
		}
		p.printJSON(it)
		return p.printed()
	}
	if offset != nil {
		p.printf("%d\t", *offset)
	}
	p.printf("%d\t%s\t%s", e.Seq, e.Kind, p.KeyFormat.String(e.Key))
	if e.HasValue() {
		p.printf("\t%s", p.KeyFormat.String(e.Value))
	}
	p.printf("\n")
	return p.printed()
}

// printFaults prints what is damaged, and returns an error for the exit status if
// something is.
func (p *program) printFaults(faults []error) error {
	for _, f := range faults {
		if p.JSON {
			p.printJSON(item{Type: "damage", What: f.Error()})
		} else {
			p.printf("# damage: %v\n", f)
		}
	}
	if err := p.printed(); err != nil || len(faults) == 0 {
		return err
	}
	return fmt.Errorf("%w: %d places; what checks out was printed", errDamage, len(faults))
}

// printEnd prints how a log ends.
func (p *program) printEnd(e *dump.End, err error) error {
	if err != nil {
		return err
	}
	if p.JSON {
		p.printJSON(item{Type: "end",
			Data: object{"bytes", e.Bytes, "closed", e.Closed, "records", e.Records, "skipped", e.Skipped}})
	} else {
		end := "closed"
		if !e.Closed {
			end = "not closed"
		}
		p.printf("# %d records in %d bytes, %d bytes skipped, %s\n", e.Records, e.Bytes, e.Skipped, end)
	}
	return p.printFaults(e.Faults)
}

// dumpWALCommand is the command line of siftkv dump-wal.
type dumpWALCommand struct {
	File cli.File `arg:"" help:"A write-ahead log, such as 000012.wal."`
}

// Run prints a line per write: offset of its record, sequence number, kind, key,
// value.
func (c *dumpWALCommand) Run(ctx context.Context, p *program) error {
	return p.printEnd(dump.WAL(string(c.File), func(offset int64, e dump.Entry) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return p.printEntry(&offset, &e)
	}))
}

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
	p.printProperties(s)
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

func (p *program) printProperties(s *sstable.Salvage) {
	f := s.Properties
	switch {
	case f == nil:
		return
	case p.JSON:
		p.printJSON(item{Type: "properties", Data: describeProperties(s.ID, f)})
		return
	}
	filter := "none"
	if f.FilterFamily != "" {
		filter = fmt.Sprintf("%s, %d bytes for %d keys", f.FilterPolicy, f.FilterBytes, f.FilterKeys)
	}
	p.printf("# id %016x; %d entries (%d deletes), %d range deletes; keys %s to %s; sequence numbers %d to %d\n"+
		"# %d data blocks of %d bytes (%s); index %d bytes; filter %s\n",
		s.ID, f.Entries, f.Deletes, f.RangeDeletes, p.KeyFormat.String(f.Smallest), p.KeyFormat.String(f.Largest),
		f.SmallestSeq, f.LargestSeq,
		f.DataBlocks, f.DataBytes, f.Compression, f.IndexBytes, filter)
}

// describeProperties is the JSON of a sorted file's properties. Without point entries, the
// keys are null.
func describeProperties(id uint64, f *sstable.Properties) object {
	o := object{
		"id", keytext.ID(id), "smallest", keytext.Bytes(f.Smallest), "largest", keytext.Bytes(f.Largest),
		"smallest_seq", f.SmallestSeq, "largest_seq", f.LargestSeq,
		"entries", f.Entries, "deletes", f.Deletes, "range_deletes", f.RangeDeletes,
		"merges", f.Merges, "merger", f.Merger, "expiring", f.Expiring,
	}
	if f.Expiring > 0 {
		o = append(o, "last_expiry", moment(f.LastExpiry))
	}
	if f.ExpiryOctiles != (sstable.Octiles{}) {
		var times []string // at which an eighth after the other has expired
		for _, octile := range f.ExpiryOctiles {
			times = append(times, moment(octile))
		}
		o = append(o, "expiry_octiles", times)
	}
	return append(o, "overwritten", f.Overwritten, "raw_key_bytes", f.RawKeyBytes, "raw_value_bytes", f.RawValueBytes,
		"data_bytes", f.DataBytes, "data_blocks", f.DataBlocks, "compression", f.Compression.String(),
		"block_size", f.BlockSize, "restart_interval", f.RestartInterval,
		"index_bytes", f.IndexBytes, "index_leaves", f.IndexLeaves,
		"filter_bytes", f.FilterBytes, "filter_keys", f.FilterKeys, "filter_family", f.FilterFamily,
		"filter_policy", f.FilterPolicy, "filter_prefix", f.FilterPrefix, "prefix_only", f.PrefixOnly)
}

// moment is the text of a time in microseconds since 1970.
func moment(micros uint64) string {
	return time.UnixMicro(int64(micros)).UTC().Format(time.RFC3339Nano)
}

// dumpManifestCommand is the command line of siftkv dump-manifest.
type dumpManifestCommand struct {
	File cli.File `arg:"" help:"A manifest, such as MANIFEST-000007."`
}

// Run prints every version edit.
func (c *dumpManifestCommand) Run(ctx context.Context, p *program) error {
	return p.printEnd(dump.Manifest(string(c.File), func(offset int64, e *manifest.Edit) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.JSON {
			p.printJSON(item{Type: "edit", Offset: &offset, Data: describeEdit(e)})
		} else {
			p.printEdit(offset, e)
		}
		return p.printed()
	}))
}

// describeEdit is the JSON of a version edit. A largest key that is null is no bound.
func describeEdit(e *manifest.Edit) object {
	deleted, added := []object{}, []object{}
	for _, d := range e.Deleted {
		deleted = append(deleted, object{"level", d.Level, "num", d.Num})
	}
	for _, a := range e.Added {
		o := object{"level", a.Level}
		if a.Run != 0 {
			o = append(o, "run", a.Run)
		}
		t := &a.Table
		o = append(o, "num", t.Num, "id", keytext.ID(t.ID), "bytes", t.Size, "entries", t.Entries,
			"smallest_seq", t.SmallestSeq, "largest_seq", t.LargestSeq,
			"smallest", keytext.Bytes(t.Smallest), "largest", keytext.Bytes(t.Largest))
		if t.LargestExclusive {
			o = append(o, "largest_exclusive", true)
		}
		added = append(added, o)
	}
	o := object{"store_id", keytext.ID(e.StoreID), "next_file", e.NextFile, "log_num", e.LogNum, "last_seq", e.LastSeq}
	if e.Closed != 0 {
		o = append(o, "closed_seq", e.Closed)
	}
	return append(o, "deleted", deleted, "added", added)
}

func (p *program) printEdit(offset int64, e *manifest.Edit) {
	p.printf("%d\tedit: store %016x, next file %d, log %d, last sequence number %d\n", offset, e.StoreID,
		e.NextFile, e.LogNum, e.LastSeq)
	if e.Closed != 0 {
		p.printf("\tclosed in good order, with writes up to sequence number %d\n", e.Closed)
	}
	for _, d := range e.Deleted {
		p.printf("\t- L%d %s\n", d.Level, manifest.FileName(manifest.FileTable, d.Num))
	}
	for _, a := range e.Added {
		t := &a.Table
		bound := p.bound(t.Largest, "no bound")
		if t.LargestExclusive {
			bound += " (excluded)"
		}
		level := strconv.Itoa(a.Level)
		if a.Run != 0 {
			level += " run " + strconv.FormatUint(a.Run, 10)
		}
		p.printf("\t+ L%s %s\t%d bytes, %d entries, sequence numbers %d to %d, keys %s to %s\n", level,
			manifest.FileName(manifest.FileTable, t.Num),
			t.Size, t.Entries, t.SmallestSeq, t.LargestSeq, p.KeyFormat.String(t.Smallest), bound)
	}
}
