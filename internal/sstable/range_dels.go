package sstable

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// decodeRangeDels decodes range tombstones, which alias data. They get sequence number
// seq if it is not zero. Their starts are stored whole, so that none needs memory of its own.
func decodeRangeDels(data []byte, seq base.SeqNum) (*rangedel.Set, error) {
	if err := checkBlock(data); err != nil {
		return nil, err
	}
	block := viewBlock(data)
	entries := block.entries
	const smallest = 6 // bytes of an entry: its lengths, trailer and value
	b := rangedel.NewBuilder(entries, min(block.numRestarts(), len(entries)/smallest))
	var e entry
	for at := 0; at < len(entries); at = e.next() {
		if !decodeEntry(entries, at, &e) || e.shared > 0 {
			return nil, errBlock
		}
		value := entries[e.valueAt():e.next()]
		end, err := rangedel.DecodeEnd(value)
		if err != nil {
			return nil, err
		}
		if e.trailer.Kind() != base.KindRangeDelete {
			start := entries[e.keyAt:e.valueAt():e.valueAt()]
			return nil, fmt.Errorf("unexpected %s", base.InternalKey{User: start, Trailer: e.trailer})
		}
		endAt := e.next() - len(end) // an end is the last of its value
		if end == nil {
			endAt = rangedel.NoEnd
		}
		if err := b.AddAt(e.keyAt, e.valueAt(), endAt, e.next(), max(seq, e.trailer.SeqNum())); err != nil {
			return nil, err
		}
	}
	return b.Set(), nil
}
