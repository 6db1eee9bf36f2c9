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
	raw, err := s.tailBlock(handle{f.propsOffset, uint64(f.propsLength)})
	var p *Properties
	if err == nil {
		p, err = decodeProperties(raw)
	}
	if err != nil {
		s.tailFault("properties: %v", err)
		return
	}
	if p.DataBytes > uint64(len(s.data)) {
		s.tailFault("properties: the file cannot hold %d bytes of blocks", p.DataBytes)
		return
	}
	s.out.Properties, s.limit = p, int(p.DataBytes)
	if err := s.readIndex(p); err != nil {
		s.tailFault("index: %v", err)
	}
	if p.rangeDels.length > 0 {
		raw, err := s.tailBlock(p.rangeDels)
		var set *rangedel.Set
		if err == nil {
			set, err = decodeRangeDels(bytes.Clone(raw), s.seq)
		}
		if err != nil {
			s.tailFault("range tombstones: %v", err)
			s.out.TombstonesLost = true
		}
		s.out.Tombstones = set.Clip(nil, nil, nil)
	}
	if p.filter.length > 0 {
		raw, err := s.tailBlock(p.filter)
		if err == nil {
			_, err = filterpolicy.Decode(p.FilterFamily, bytes.Clone(raw))
		}
		if err != nil && !errors.Is(err, filterpolicy.ErrUnknownFamily) {
			s.tailFault("filter: %v", err)
		}
	}
}

// tailBlock returns a block that is not compressed, checked.
func (s *salvager) tailBlock(h handle) ([]byte, error) { return h.cut(s.data, 0, s.out.ID) }

// readIndex takes the offsets of blocks from the index, as far as it checks out.
func (s *salvager) readIndex(p *Properties) error {
	raw, err := s.tailBlock(p.index)
	if err != nil {
		return err
	}
	index, err := blockindex.Decode(raw)
	if err != nil {
		return err
	}
	if p.IndexLeaves == 0 {
		s.complete = s.addStarts(&index) && len(s.starts) == int(p.DataBlocks)
		return nil
	}
	whole := true
	for i := range index.Len() {
		offset, length := index.Block(i)
		raw, leafErr := s.tailBlock(handle{offset, uint64(max(length-trailerSize, 0))})
		var leaf blockindex.Index
		if leafErr == nil {
			leaf, leafErr = blockindex.Decode(raw)
		}
		if leafErr != nil {
			err, whole = leafErr, false
			continue
		}
		whole = s.addStarts(&leaf) && whole
	}
	s.complete = whole && len(s.starts) == int(p.DataBlocks)
	return err
}

// addStarts adds the blocks that an index names, and reports whether all lie
// within the data, in order.
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
