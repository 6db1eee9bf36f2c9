package sstable

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A block begins where the one before it ends, or where the index says; if both are damaged, every offset is tried at
// which the first bytes are those of a block. It ends where the index or its checksum says (blockEnds). Once in 2^32
// pairs of a beginning and an end a checksum is right by chance, so that the form of a block has to be right as well.

// resyncWindow bounds the length of a block with a guessed beginning, in bytes, unless
// larger blocks have been seen. It keeps the number of pairs small.
const resyncWindow = 256 << 10

// maxRefused bounds the work for blocks with a right checksum and a wrong form, in
// bytes for each byte of the file. Only files made for it have more than a few.
const maxRefused = 4

// A foundBlock is a block with the right checksum and form.
type foundBlock struct {
	pos, end   int
	form       blockForm
	data       []byte        // of a data block, decoded
	tombstones *rangedel.Set // of a block of range tombstones
	properties *Properties
}

// A blockForm says what a block is by its bytes.
type blockForm uint8

const (
	otherForm blockForm = iota // of the tail
	dataForm
	tombstonesForm
	propertiesForm
)

// blockAt returns the block that begins at pos. If pos does not follow a block it is only a guess, and the block has to
// be one of entries or tombstones: other forms prove too little.
func (s *salvager) blockAt(pos int, follows bool) (b foundBlock, ok bool) {
	if i, known := slices.BinarySearch(s.starts, pos); known {
		end := s.limit
		if i+1 < len(s.starts) {
			end = s.starts[i+1]
		}
		s.work += end - pos
		if stored, c, err := splitTrailer(s.data[pos:end], s.out.ID, uint64(pos)); err == nil {
			if b, ok = s.parse(pos, stored, c, true); ok {
				return b, true
			}
		}
		if s.complete {
			return b, false
		}
	}
	window := s.limit - pos
	if !follows {
		window = min(window, max(resyncWindow, 2*s.largest))
	}
	s.work++
	if s.ends == nil {
		s.work += len(s.data)
		s.ends = newBlockEnds(s.data, s.out.ID)
	}
	for _, e := range s.ends.of(pos, window-trailerSize+1) {
		if s.refused > maxRefused*len(s.data) {
			break
		}
		if b, ok = s.parse(pos, s.data[pos:e.trailer:e.trailer], Compression(s.data[e.trailer]), follows); ok {
			return b, true
		}
	}
	return b, false
}

// resume returns the first block after damage at pos.
func (s *salvager) resume(pos int) (b foundBlock, ok bool) {
	if s.complete {
		i, _ := slices.BinarySearch(s.starts, pos+1)
		for ; i < len(s.starts) && !ok; i++ {
			b, ok = s.blockAt(s.starts[i], true)
		}
		return b, ok
	}
	for at := pos + 1; at < s.limit; at++ {
		_, known := slices.BinarySearch(s.starts, at)
		if !known && !beginsBlock(s.data[at:]) {
			continue
		}
		if b, ok = s.blockAt(at, false); ok {
			return b, true
		}
	}
	return b, false
}

// parse reports whether a block with the right checksum could be at pos, and what it is.
func (s *salvager) parse(pos int, stored []byte, c Compression, follows bool) (b foundBlock, ok bool) {
	b = foundBlock{pos: pos, end: pos + len(stored) + trailerSize}
	data, size, err := stored, 0, error(nil)
	if c != NoCompression {
		size, _ = compression.DecodedSize(stored, c)
		data, err = compression.Decompress(nil, stored, c)
	}
	work := trailerSize + max(len(stored), size, len(data))
	s.work += work
	if err == nil && s.isData(data) {
		b.form, b.data = dataForm, data
		return b, true
	}
	if p := s.out.Properties; p == nil || pos >= int(p.DataBytes) {
		b.formOfTail(stored, s.seq, uint64(s.dataEnd))
		if follows || b.form == tombstonesForm {
			return b, true
		}
	}
	s.refused += work
	return b, false
}

// formOfTail takes stored for a block after the data, which only its form identifies.
func (b *foundBlock) formOfTail(stored []byte, seq base.SeqNum, dataEnd uint64) {
	if set, err := decodeRangeDels(bytes.Clone(stored), seq); err == nil && !set.Empty() {
		b.form, b.tombstones = tombstonesForm, set
		return
	}
	if p, err := decodeProperties(stored); err == nil && p.DataBlocks > 0 && p.DataBytes >= dataEnd {
		b.form, b.properties = propertiesForm, p
	}
}

// isData reports whether a decoded block is a data block after the entries so far. It
// compares an entry with the one before it by the bytes that they do not share, so that it
// reads every byte of the block once, however much of its keys they share.
func (s *salvager) isData(data []byte) bool {
	if checkBlock(data) != nil {
		return false
	}
	entries := viewBlock(data).entries
	last := s.last.Clone()
	first := s.out.Entries == 0
	var e entry
	for at := 0; at < len(entries); at = e.next() {
		if !decodeEntry(entries, at, &e) || e.shared > len(last.User) || at == 0 && e.shared > 0 {
			return false
		}
		unshared := entries[e.keyAt:e.valueAt()]
		order := cmp.Or(bytes.Compare(last.User[e.shared:], unshared), cmp.Compare(e.trailer, last.Trailer))
		if e.trailer.Kind() == base.KindRangeDelete || !first && order >= 0 {
			return false
		}
		last = base.InternalKey{User: append(last.User[:e.shared], unshared...), Trailer: e.trailer}
		first = false
	}
	return len(entries) > 0
}

// beginsBlock reports whether b may be the beginning of a data block as it is stored. The first entry shares nothing,
// so the first byte is zero. A compressed block has that byte at the front of its first literal.
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
