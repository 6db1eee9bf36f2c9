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
	"github.com/siftkv/siftkv/internal/sstable"
)

// An item is a line of a dump in JSON. Every line has a type: entry, record, edit,
// properties, damage or end.
type item struct {
	Type   string  `json:"type"`
	Offset *int64  `json:"offset,omitempty"`
	Seq    *uint64 `json:"seq,omitempty"`
	Kind   string  `json:"kind,omitempty"`
	Key    any     `json:"key,omitempty"`
	Value  any     `json:"value,omitempty"`
	Apart  any     `json:"apart,omitempty"` // where a blob value is, in place of the value
	End    any     `json:"end,omitempty"`   // of a range delete; absent: no bound
	What   string  `json:"what,omitempty"`
	Data   any     `json:"data,omitempty"`
}

// printEntry prints one version or tombstone; the value of a range delete is its end, nil
// if it has no bound.
func (p *program) printEntry(ctx context.Context, offset *int64, k base.InternalKey, value []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	kind := k.Kind()
	if h, expiry, err := blob.HandleOf(kind, value); kind.Apart() && err == nil {
		return p.printHandle(offset, k, h, expiry)
	}
	hasValue := kind != base.KindDelete && (kind != base.KindRangeDelete || value != nil)
	if p.JSON {
		seq := uint64(k.SeqNum())
		it := item{Type: "entry", Offset: offset, Seq: &seq, Kind: kind.String(), Key: p.KeyFormat.JSON(k.User)}
		switch {
		case !hasValue:
		case kind == base.KindRangeDelete:
			it.End = p.KeyFormat.JSON(value)
		default:
			it.Value = p.KeyFormat.JSON(value)
		}
		p.printJSON(it)
		return p.printed()
	}
	if offset != nil {
		p.printf("%d\t", *offset)
	}
	p.printf("%d\t%s\t%s", k.SeqNum(), kind, p.KeyFormat.String(k.User))
	if hasValue {
		p.printf("\t%s", p.KeyFormat.String(value))
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
	if f.RangeFilterFamily != "" {
		filter += fmt.Sprintf("; range filter %s, %d bytes for %d keys", f.RangeFilterPolicy, f.RangeFilterBytes,
			f.RangeFilterKeys)
	}
	p.printf("# id %016x; %d entries (%d deletes), %d range deletes; keys %s to %s; sequence numbers %d to %d\n"+
		"# %d data blocks of %d bytes (%s); index %d bytes; filter %s\n",
		s.ID, f.Entries, f.Deletes, f.RangeDeletes, p.KeyFormat.String(f.Smallest), p.KeyFormat.String(f.Largest),
		f.SmallestSeq, f.LargestSeq,
		f.DataBlocks, f.DataBytes, f.Compression, f.IndexBytes, filter)
	p.printBlobRefs(f)
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
	if f.Apart > 0 {
		o = append(o, "apart", f.Apart, "apart_bytes", f.ApartBytes, "blobs", describeBlobRefs(f),
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

// moment is the text of a time in microseconds since 1970.
func moment(micros uint64) string {
	return time.UnixMicro(int64(micros)).UTC().Format(time.RFC3339Nano)
}
