package blockindex

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
)

// The encoding of an index of n entries. Numbers are little-endian.
//
//	n        uint32     number of entries
//	first    uint32     number of the first block
//	common   uint32     length of what all separators begin with
//	rests    uint32     length of the rests of all separators
//	start    uint64     file offset at which the first block begins
//	         common bytes
//	prefix   n × uint64 first eight bytes of the rest of each separator, as a
//	                    big-endian number; a shorter rest is padded with zeros
//	end      n × uint64 file offset at which each block ends
//	restEnd  n × uint32 where each separator's rest ends in the bytes below
//	         rests bytes: what follows the common bytes of each separator
//
// A separator is the common bytes and its rest. Blocks follow each other without gaps.

const (
	headerSize = 4*4 + 8
	entrySize  = 8 + 8 + 4
)

// ErrCorrupt is returned for bytes that are not an index. It matches the store's corruption error.
var ErrCorrupt = fmt.Errorf("%w: malformed block index", base.ErrCorruption)

// An Index is a view of an encoded index. It is immutable and safe for concurrent use. The zero Index has no entries.
type Index struct {
	n, first int
	start    uint64
	common   []byte
	prefixes []byte
	ends     []byte
	restEnds []byte
	rests    []byte
	guide    guide
}

// Decode checks data and returns a view of it. The caller must not change data
// while the index is in use. It takes O(n).
func Decode(data []byte) (Index, error) {
	x, err := layout(data)
	if err != nil {
		return Index{}, err
	}
	return x, x.check()
}

// View returns the view of data that Decode has accepted before, in constant time. For other bytes the answers are
// arbitrary, but still within bounds or a run-time panic; use Decode for anything that is not checked already.
func View(data []byte) Index {
	x, err := layout(data)
	if err != nil {
		return Index{}
	}
	return x
}

func layout(data []byte) (Index, error) {
	if len(data) < headerSize {
		return Index{}, ErrCorrupt
	}
	n := uint64(binary.LittleEndian.Uint32(data))
	first := binary.LittleEndian.Uint32(data[4:])
	common := uint64(binary.LittleEndian.Uint32(data[8:]))
	rests := uint64(binary.LittleEndian.Uint32(data[12:]))
	if uint64(len(data)) != headerSize+common+n*entrySize+rests {
		return Index{}, ErrCorrupt
	}
	x := Index{n: int(n), first: int(first), start: binary.LittleEndian.Uint64(data[16:])}
	data = data[headerSize:]
	x.common, data = data[:common:common], data[common:]
	x.prefixes, data = data[:8*n:8*n], data[8*n:]
	x.ends, data = data[:8*n:8*n], data[8*n:]
	x.restEnds, x.rests = data[:4*n:4*n], data[4*n:]
	return x, nil
}

var errOrder = errors.New("entries are out of order")

// check holds every entry against its neighbours, so that no search can step
// out of the bytes and no block can be empty, overlap or run backwards.
func (x *Index) check() error {
	restEnd, end := uint32(0), x.start
	var last []byte
	for i := range x.n {
		e := binary.LittleEndian.Uint32(x.restEnds[4*i:])
		if e < restEnd || uint64(e) > uint64(len(x.rests)) {
			return fmt.Errorf("%w: entry %d: %w", ErrCorrupt, i, errOrder)
		}
		rest := x.rests[restEnd:e]
		blockEnd := x.end(i)
		switch {
		case blockEnd <= end || blockEnd > 1<<62:
			return fmt.Errorf("%w: block %d ends before it begins", ErrCorrupt, i)
		case i > 0 && bytes.Compare(last, rest) > 0:
			return fmt.Errorf("%w: entry %d: %w", ErrCorrupt, i, errOrder)
		case prefixOf(rest) != x.prefix(i):
			return fmt.Errorf("%w: entry %d: prefix does not match its separator", ErrCorrupt, i)
		}
		restEnd, end, last = e, blockEnd, rest
	}
	if uint64(restEnd) != uint64(len(x.rests)) {
		return fmt.Errorf("%w: bytes after the last separator", ErrCorrupt)
	}
	return nil
}

// prefixOf returns the first eight bytes of b as a big-endian number, padded
// with zeros, so that prefixes compare as the bytes do (ties undecided).
func prefixOf(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var p uint64
	for i, c := range b {
		p |= uint64(c) << (56 - 8*i)
	}
	return p
}
