package storecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A dump is rows. Each has a type: entry, record, edit, properties, damage or end.

// printEntry prints one version or tombstone. Its offset is nil, or that of its record in a log. The value of a range
// delete is its end, nil if it has no bound; a blob value has its place instead of the value.
func (p *program) printEntry(ctx context.Context, offset any, k base.InternalKey, value []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	kind := k.Kind()
	row := object{"offset", offset, "seq", uint64(k.SeqNum()), "kind", kind.String(), "key", p.formatted(k.User)}
	h, expiry, err := blob.HandleOf(kind, value)
	switch {
	case kind.Separated() && err == nil:
		row = append(row, "blob", object{"file", manifest.FileName(manifest.FileBlob, h.File), "record", h.Ordinal,
			"offset", h.Offset, "stored_bytes", h.Length, "bytes", h.Size, "expiry", moment(expiry)})
	case kind == base.KindDelete, kind == base.KindRangeDelete && value == nil:
	case kind == base.KindRangeDelete:
		row = append(row, "end", p.formatted(value))
	default:
		row = append(row, "value", p.formatted(value))
	}
	return p.row("entry", row, nil)
}

// printFaults prints what is damaged, and returns an error for the exit status if
// something is.
func (p *program) printFaults(faults []error) error {
	for _, f := range faults {
		if p.JSON {
			p.printJSON(object{"type", "damage", "what", f.Error()})
		} else {
			p.printf("# damage: %v\n", f)
		}
	}
	if err := p.printed(); err != nil || len(faults) == 0 {
		return err
	}
	return fmt.Errorf("%w: %d places; what checks out was printed", errDamage, len(faults))
}

type dumpSSTableCommand struct {
	File      cli.File `arg:"" help:"A sorted file: 000012.sst, or s3://BUCKET/PREFIX/000012.sst."`
	NoEntries bool     `help:"Print the properties alone; all blocks are checked nevertheless."`
}

// Run prints entries as they come, points in order and then range deletes, and after them
// the properties and what is damaged.
func (c *dumpSSTableCommand) Run(ctx context.Context, p *program) (err error) {
	file, name, err := p.openFile(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return err
	}
	entry := func(k base.InternalKey, value []byte) error {
		if c.NoEntries {
			return ctx.Err()
		}
		return p.printEntry(ctx, nil, k, value)
	}
	s, err := sstable.SalvageFile(file, size, &sstable.SalvageOptions{Name: name}, entry)
	if err = errors.Join(err, failureOf(file)); err != nil {
		return err
	}
	for _, t := range s.Tombstones {
		if err := entry(base.MakeKey(t.Start, t.Seq, base.KindRangeDelete), t.End); err != nil {
			return err
		}
	}
	if f := s.Properties; f != nil {
		if err := p.row("properties", nil, p.describeProperties(s.ID, f)); err != nil {
			return err
		}
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

// describeProperties has the properties of a sorted file. Without point entries, the keys are null.
func (p *program) describeProperties(id uint64, f *sstable.Properties) object {
	o := object{
		"id", keytext.ID(id), "smallest", p.keyBound(f.Smallest), "largest", p.keyBound(f.Largest),
		"smallest_seq", f.SmallestSeq, "largest_seq", f.LargestSeq,
		"entries", f.Entries, "deletes", f.Deletes, "range_deletes", f.RangeDeletes,
		"merges", f.Merges, "merger", f.Merger, "expiring", f.Expiring, "last_expiry", moment(f.LastExpiry),
	}
	if f.ExpiryOctiles != (sstable.Octiles{}) {
		var times []any // at which an eighth after the other has expired
		for _, octile := range f.ExpiryOctiles {
			times = append(times, moment(octile))
		}
		o = append(o, "expiry_octiles", times)
	}
	if f.Separated > 0 {
		var blobs []object
		for _, r := range f.Blobs {
			blobs = append(blobs, object{"num", r.Num, "id", keytext.ID(r.ID), "records", r.Records, "bytes", r.Bytes})
		}
		o = append(o, "separated", f.Separated, "separated_bytes", f.SeparatedBytes, "blobs", blobs,
			"droppable", object{"overwritten", f.Droppable.Overwritten, "expiring", f.Droppable.Expiring})
	}
	return append(o, "overwritten", f.Overwritten, "dense_deletes", f.DenseDeletes,
		"raw_key_bytes", f.RawKeyBytes, "raw_value_bytes", f.RawValueBytes,
		"data_bytes", f.DataBytes, "data_blocks", f.DataBlocks, "compression", f.Compression.String(),
		"block_size", f.BlockSize, "restart_interval", f.RestartInterval,
		"index_bytes", f.IndexBytes, "index_leaves", f.IndexLeaves,
		"filter_bytes", f.FilterBytes, "filter_keys", f.FilterKeys, "filter_family", f.FilterFamily,
		"filter_policy", f.FilterPolicy, "filter_prefix", f.FilterPrefix, "prefix_only", f.PrefixOnly,
		"range_filter_bytes", f.RangeFilterBytes, "range_filter_keys", f.RangeFilterKeys,
		"range_filter_family", f.RangeFilterFamily, "range_filter_policy", f.RangeFilterPolicy)
}

// moment is a time in microseconds since 1970; nil, if there is none.
func moment(micros uint64) any {
	if micros == 0 {
		return nil
	}
	return time.UnixMicro(int64(micros)).UTC().Format(time.RFC3339Nano)
}
