package sstable

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/base"
)

// A block does not say how long it is. Where it ends is found by going on byte by
// byte until what follows is the checksum of what came before: one pass over the
// block, with one chance in 2^32 per byte to be misled, and then the block's form
// has to be right as well. Where a block begins is known if the one before it is
// whole or the index is; if not, every offset is tried at which the first bytes are
// those of a block.

// resyncWindow is how far the end of a block is looked for from an offset that is
// only a guess, in bytes, unless larger blocks have been seen.
const resyncWindow = 256 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// block returns the block that begins at pos and ends within window bytes, as it is
// stored.
func (s *salvager) block(pos, window int) (stored []byte, c Compression, end int, ok bool) {
	if i, found := slices.BinarySearch(s.starts, pos); found {
		end := s.limit
		if i+1 < len(s.starts) {
			end = s.starts[i+1]
		}
		if stored, c, err := splitTrailer(s.data[pos:end], s.out.ID, uint64(pos)); err == nil {
			return stored, c, end, true
		}
		if s.complete {
			return nil, 0, 0, false
		}
	}
	crc := ^base.Checksum(s.out.ID, uint64(pos), nil)
	last := min(pos+window, len(s.data)) - trailerSize
	for at := pos; at <= last; at++ {
		b := s.data[at]
		crc = castagnoli[byte(crc)^b] ^ crc>>8
		if c := Compression(b); (c == NoCompression || c == Snappy || c == Zstd) && ^crc == binary.LittleEndian.Uint32(s.data[at+1:]) {
			return s.data[pos:at:at], c, at + trailerSize, true
		}
	}
	return nil, 0, 0, false
}

// resume returns where the next block begins behind damage at pos, or the limit.
func (s *salvager) resume(pos int) int {
	if s.complete {
		i, _ := slices.BinarySearch(s.starts, pos+1)
		if i < len(s.starts) {
			return s.starts[i]
		}
		return s.limit
	}
	window := max(resyncWindow, 2*s.largest)
	for at := pos + 1; at < s.limit; at++ {
		_, known := slices.BinarySearch(s.starts, at)
		if !known && !beginsBlock(s.data[at:]) {
			continue
		}
		if _, _, _, ok := s.block(at, window); ok {
			return at
		}
	}
	return s.limit
}

// beginsBlock reports whether b may be the beginning of a data block as it is
// stored: the first entry shares nothing, so that the first byte is zero, which a
// compressed block has at the front of its first literal.
func beginsBlock(b []byte) bool {
	const zstdMagic = 0xfd2fb528
	if len(b) < trailerSize {
		return false
	}
	switch head := binary.LittleEndian.Uint32(b); {
	case head == 0:
		return false // a hole: an empty key's delete at sequence number 0 is never stored
	case b[0] == 0 || head == zstdMagic:
		return true
	}
	n, err := s2.DecodedLen(b[:min(len(b), binary.MaxVarintLen64)])
	if err != nil || n == 0 || n > maxBlockSize {
		return false
	}
	_, at := binary.Uvarint(b)
	if at >= len(b) || b[at]&3 != 0 { // a literal comes first: there is nothing to copy from
		return false
	}
	extra := max(int(b[at]>>2)-59, 0) // bytes of a length that does not fit the tag
	at += 1 + extra
	return at < len(b) && b[at] == 0
}

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
