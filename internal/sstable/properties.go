package sstable

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
)

// Properties describe a file: what is in it, and where.
//
// On disk they are a run of (tag uvarint, length uvarint, bytes); a number is a
// uvarint in those bytes. A reader passes over tags that it does not know.
type Properties struct {
	Entries           uint64 // point entries, all versions and tombstones included
	Deletes           uint64 // of them, point tombstones
	RangeDeletes      uint64 // range tombstones
	Merges            uint64 // point entries that are merge operands
	Expiring          uint64 // point entries that are values with an expiry
	LastExpiry        uint64 // the latest of these, in microseconds since 1970 UTC
	ExpiryOctiles     Octiles
	Overwritten       uint64 // point entries under a newer value or tombstone of their key in the file
	DenseDeletes      uint64 // point tombstones in stretches of at least DenseStretch of them
	Merger            string // name of the operands' merger; "" without operands
	RawKeyBytes       uint64 // bytes of user keys, uncompressed
	RawValueBytes     uint64 // bytes of values, uncompressed
	DataBytes         uint64 // of all data blocks in the file, trailers included
	DataBlocks        uint64
	IndexBytes        uint64 // of the index in the file, leaves included
	IndexLeaves       uint64 // 0: the index is in one piece
	FilterBytes       uint64
	FilterKeys        uint64 // distinct user keys that the filter was built from
	FilterFamily      string // the filter's name on disk; "" without a filter
	FilterPolicy      string // the policy's spec, for people
	FilterPrefix      string // name of the extractor of the filter's prefixes; "" for none
	PrefixOnly        bool   // the filter holds prefixes and no whole keys
	RangeFilterBytes  uint64
	RangeFilterKeys   uint64 // distinct user keys that the range filter was built from
	RangeFilterFamily string // the range filter's name on disk; "" without one
	RangeFilterPolicy string // the policy's spec, for people
	Compression       Compression
	BlockSize         uint64 // target, before compression
	RestartInterval   uint64

	Separated      uint64 // point entries with blob values
	SeparatedBytes uint64 // of these values, as they were given
	Blobs          BlobRefs
	Droppable      base.Droppable // what rewriting the file would free in blob files

	// Smallest and Largest bound the user keys of the file's point entries. Both are nil if it has none.
	Smallest, Largest []byte
	// SmallestSeq and LargestSeq bound the sequence numbers of all entries.
	SmallestSeq, LargestSeq base.SeqNum

	filter, index, rangeDels, rangeFilter handle
	leafBlocks                            uint64 // data blocks per index leaf
	written                               uint64 // version of the format; 0: 1 or 2
}

// tags of the properties on disk. They never change and are never reused.
const (
	tagEntries = iota + 1
	tagDeletes
	tagRangeDeletes
	tagRawKeyBytes
	tagRawValueBytes
	tagDataBytes
	tagDataBlocks
	tagIndexBytes
	tagIndexLeaves
	tagFilterBytes
	tagFilterKeys
	tagFilterFamily
	tagFilterPolicy
	tagCompression
	tagBlockSize
	tagRestartInterval
	tagSmallest
	tagLargest
	tagSmallestSeq
	tagLargestSeq
	tagFilterOffset
	tagFilterLength
	tagIndexOffset
	tagIndexLength
	tagRangeDelsOffset
	tagRangeDelsLength
	tagLeafBlocks
	tagFilterPrefix
	tagPrefixOnly
	tagMerges
	tagExpiring
	tagLastExpiry
	tagMerger
	tagVersion
	tagOverwritten
	tagExpiryOctiles
	tagDenseDeletes
	tagRangeFilterBytes
	tagRangeFilterKeys
	tagRangeFilterFamily
	tagRangeFilterPolicy
	tagRangeFilterOffset
	tagRangeFilterLength
)

const (
	tagSeparated = iota + 60
	tagSeparatedBytes
	tagBlobs
	tagDroppable

	lastTag = tagDroppable
)

// fields pairs every property with its tag.
func (p *Properties) fields() map[uint64]any {
	return map[uint64]any{
		tagEntries: &p.Entries, tagDeletes: &p.Deletes, tagRangeDeletes: &p.RangeDeletes,
		tagRawKeyBytes: &p.RawKeyBytes, tagRawValueBytes: &p.RawValueBytes,
		tagDataBytes: &p.DataBytes, tagDataBlocks: &p.DataBlocks,
		tagIndexBytes: &p.IndexBytes, tagIndexLeaves: &p.IndexLeaves,
		tagFilterBytes: &p.FilterBytes, tagFilterKeys: &p.FilterKeys,
		tagFilterFamily: &p.FilterFamily, tagFilterPolicy: &p.FilterPolicy, tagFilterPrefix: &p.FilterPrefix,
		tagPrefixOnly: &p.PrefixOnly, tagCompression: &p.Compression,
		tagBlockSize: &p.BlockSize, tagRestartInterval: &p.RestartInterval,
		tagSmallest: &p.Smallest, tagLargest: &p.Largest,
		tagSmallestSeq: (*uint64)(&p.SmallestSeq), tagLargestSeq: (*uint64)(&p.LargestSeq),
		tagFilterOffset: &p.filter.offset, tagFilterLength: &p.filter.length,
		tagIndexOffset: &p.index.offset, tagIndexLength: &p.index.length,
		tagRangeDelsOffset: &p.rangeDels.offset, tagRangeDelsLength: &p.rangeDels.length,
		tagLeafBlocks: &p.leafBlocks, tagVersion: &p.written,
		tagMerges: &p.Merges, tagMerger: &p.Merger, tagOverwritten: &p.Overwritten,
		tagDenseDeletes: &p.DenseDeletes, tagBlobs: &p.Blobs,
		tagRangeFilterBytes: &p.RangeFilterBytes, tagRangeFilterKeys: &p.RangeFilterKeys,
		tagRangeFilterFamily: &p.RangeFilterFamily, tagRangeFilterPolicy: &p.RangeFilterPolicy,
		tagRangeFilterOffset: &p.rangeFilter.offset, tagRangeFilterLength: &p.rangeFilter.length,
		tagExpiring: &p.Expiring, tagLastExpiry: &p.LastExpiry, tagDroppable: &p.Droppable,
		tagExpiryOctiles: &p.ExpiryOctiles, tagSeparated: &p.Separated, tagSeparatedBytes: &p.SeparatedBytes,
	}
}

// version returns the version that the footer must name. Files of the first two do not repeat theirs.
func (p *Properties) version() uint64 {
	switch {
	case p.Separated > 0 || len(p.Blobs) > 0:
		return separatedVersion
	case p.written > 0:
		return p.written
	case p.Merges > 0 || p.Expiring > 0:
		return kindsVersion
	}
	return plainVersion
}

func (p *Properties) encode() (dst []byte) {
	fields := p.fields()
	for tag := uint64(tagEntries); tag <= lastTag; tag++ {
		if b, ok := encodeProperty(fields[tag]); ok {
			dst = binary.AppendUvarint(dst, tag)
			dst = binary.AppendUvarint(dst, uint64(len(b)))
			dst = append(dst, b...)
		}
	}
	return dst
}

// encodeProperty returns what is on disk of a field. It reports false if the field is not written, as
// its zero value says the same.
func encodeProperty(field any) (b []byte, written bool) {
	switch f := field.(type) {
	case *uint64:
		return binary.AppendUvarint(nil, *f), *f != 0
	case *string:
		return []byte(*f), *f != ""
	case *[]byte:
		return *f, *f != nil
	case *bool:
		return []byte{1}, *f
	case *Compression:
		return []byte{byte(*f)}, true
	case *Octiles:
		return f.Append(nil), *f != Octiles{}
	case *BlobRefs:
		return f.encode(), len(*f) > 0
	case *base.Droppable:
		return f.Append(nil), *f != base.Droppable{}
	}
	return nil, false
}

var errProperties = errors.New("malformed properties")

// decodeProperties decodes b. The result shares no memory with b.
func decodeProperties(b []byte) (*Properties, error) {
	p := &Properties{}
	fields := p.fields()
	for d := (base.Decoder{Rest: b}); len(d.Rest) > 0; {
		tag, value := d.Uvarint(), d.Bytes()
		if d.Bad {
			return nil, errProperties
		}
		if !decodeProperty(fields[tag], value) {
			return nil, fmt.Errorf("%w: tag %d has another form", errProperties, tag)
		}
	}
	return p, nil
}

// decodeProperty sets a field, nil for one that is not known, to what is on disk.
func decodeProperty(field any, value []byte) (ok bool) {
	d := base.Decoder{Rest: value}
	switch f := field.(type) {
	case *uint64:
		*f = d.Uvarint()
		return d.Done()
	case *string:
		*f = string(value)
	case *[]byte:
		*f = append([]byte{}, value...)
	case *bool:
		*f = true
	case *Compression:
		if len(value) != 1 {
			return false
		}
		*f = Compression(value[0])
	case *Octiles:
		*f = d.Octiles()
		return d.Done()
	case *BlobRefs:
		*f, ok = cutBlobRefs(value)
		return ok
	case *base.Droppable:
		*f = d.Droppable()
		return d.Done()
	}
	return true
}
