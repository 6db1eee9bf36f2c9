package sstable

import (
	"bytes"
	"errors"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// readTail decodes what the footer leads to.
func (s *salvager) readTail() {
	if s.footer == nil {
		return
	}
	f := s.footer
	p, err := decodeTail(s, handle{f.propsOffset, uint64(f.propsLength)}, decodeProperties)
	switch {
	case err != nil:
		s.tailFault("properties: %v", err)
		return
	case p.DataBytes > uint64(len(s.data)):
		s.tailFault("properties: the file cannot hold %d bytes of blocks", p.DataBytes)
		return
	}
	s.out.Properties, s.limit = p, int(p.DataBytes)
	if err := s.readIndex(p); err != nil {
		s.tailFault("index: %v", err)
	}
	if p.rangeDels.length > 0 {
		set, err := decodeTail(s, p.rangeDels, func(raw []byte) (*rangedel.Set, error) {
			return decodeRangeDels(bytes.Clone(raw), s.seq)
		})
		if err != nil {
			s.tailFault("range tombstones: %v", err)
			s.out.TombstonesLost = true
		}
		s.out.Tombstones = set.Clip(nil, nil, nil)
	}
	if p.filter.length > 0 {
		_, err := decodeTail(s, p.filter, func(raw []byte) (filterpolicy.Filter, error) {
			return filterpolicy.Decode(p.FilterFamily, bytes.Clone(raw))
		})
		if err != nil && !errors.Is(err, filterpolicy.ErrUnknownFamily) {
			s.tailFault("filter: %v", err)
		}
	}
	if p.rangeFilter.length > 0 {
		_, err := decodeTail(s, p.rangeFilter, func(raw []byte) (filterpolicy.RangeFilter, error) {
			return filterpolicy.DecodeRange(p.RangeFilterFamily, bytes.Clone(raw))
		})
		if err != nil && !errors.Is(err, filterpolicy.ErrUnknownFamily) {
			s.tailFault("range filter: %v", err)
		}
	}
}

// decodeTail decodes a block of the tail, if its checksum is right.
func decodeTail[T any](s *salvager, h handle, decode func(raw []byte) (T, error)) (v T, err error) {
	raw, err := h.cut(s.data, 0, s.out.ID)
	if err == nil {
		v, err = decode(raw)
	}
	return v, err
}

// readIndex takes the offsets of blocks from the index, as far as it checks out.
func (s *salvager) readIndex(p *Properties) error {
	index, err := decodeTail(s, p.index, blockindex.Decode)
	if err != nil {
		return err
	}
	whole := true
	if p.IndexLeaves == 0 {
		whole = s.addStarts(&index)
	} else {
		for i := range index.Len() {
			offset, length := index.Block(i)
			leaf, leafErr := decodeTail(s, handle{offset, uint64(max(length-trailerSize, 0))}, blockindex.Decode)
			if leafErr != nil {
				err, whole = leafErr, false
				continue
			}
			whole = s.addStarts(&leaf) && whole
		}
	}
	s.complete = whole && len(s.starts) == int(p.DataBlocks)
	return err
}

// addStarts adds the blocks that an index names, and reports whether all are within the data, in order.
func (s *salvager) addStarts(x *blockindex.Index) bool {
	for i := range x.Len() {
		offset, _ := x.Block(i)
		if offset >= uint64(s.limit) || len(s.starts) > 0 && int(offset) <= s.starts[len(s.starts)-1] {
			return false
		}
		s.starts = append(s.starts, int(offset))
	}
	return true
}
