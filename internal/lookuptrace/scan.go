package lookuptrace

import (
	"encoding/binary"
	"errors"
	"time"
)

// A Scan is what an iterator did from one seek to the next, or until it was closed.
type Scan struct {
	At time.Duration // when it ended, since Header.Start

	// Start is where it began, and End the bound that it could not pass: the upper one, or the
	// lower one if it is Backward. A scan without a Start began at the first key, or the last.
	Start, End Bound
	Common     int // bytes that Start and End begin with in common, if both are set

	Entries  uint64 // that it came to, there and back
	Backward bool   // it began with a step towards smaller keys
	Ended    bool   // it was not broken off: it came to its end, or that of the keys
	KeysOnly bool   // values were not asked for
}

// A Bound is a start or end of a scan.
type Bound struct {
	Set  bool
	Key  []byte // of the reader, until its next move; the first 16 KiB; nil if the trace has hashes
	Hash uint64 // keyed; 0 if the trace has keys
	Size int    // bytes of the whole
}

func (s *Scan) bits() (bits uint64) {
	for _, f := range []struct {
		set bool
		bit uint64
	}{{s.Backward, bitBackward}, {s.Start.Set, bitStart}, {s.End.Set, bitEnd}, {s.Ended, bitEnded},
		{s.KeysOnly, bitKeysOnly}} {
		if f.set {
			bits |= f.bit
		}
	}
	return bits
}

// stored returns how many bytes of a bound follow its length.
func (b *Bound) stored(keys bool) int {
	switch {
	case !b.Set:
		return 0
	case keys:
		return min(b.Size, maxBoundSize)
	}
	return hashSize
}

func (b *Bound) append(dst []byte, keys bool) []byte {
	if !b.Set {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(b.Size))
	if keys {
		return append(dst, b.Key[:b.stored(true)]...)
	}
	return binary.LittleEndian.AppendUint64(dst, b.Hash)
}

// decodeScan takes a scan, except its time, from the bytes of a frame.
func decodeScan(data []byte, keys bool) (s Scan, rest []byte, err error) {
	what, data, ok := uvarint(data, scanBits)
	if !ok {
		return s, nil, errors.New("a scan of an unknown kind")
	}
	s.Backward, s.Ended, s.KeysOnly = what&bitBackward != 0, what&bitEnded != 0, what&bitKeysOnly != 0
	if s.Entries, data, ok = uvarint(data, 1<<63-1); !ok {
		return s, nil, errors.New("a scan of impossibly many entries")
	}
	common := uint64(0)
	if what&(bitStart|bitEnd) == bitStart|bitEnd {
		if common, data, ok = uvarint(data, maxBoundLen); !ok {
			return s, nil, errors.New("a scan of bounds that have impossibly much in common")
		}
	}
	if what&bitStart != 0 {
		if data, err = s.Start.decode(data, keys); err != nil {
			return s, nil, err
		}
	}
	if what&bitEnd != 0 {
		if data, err = s.End.decode(data, keys); err != nil {
			return s, nil, err
		}
	}
	if common > uint64(min(s.Start.Size, s.End.Size)) {
		return s, nil, errors.New("a scan of bounds that have more in common than they have")
	}
	s.Common = int(common)
	return s, data, nil
}

// decode takes a bound from the bytes of a frame, and returns the others.
func (b *Bound) decode(data []byte, keys bool) ([]byte, error) {
	size, data, ok := uvarint(data, maxBoundLen)
	if !ok {
		return nil, errors.New("a scan with a bound of impossible size")
	}
	b.Set, b.Size = true, int(size)
	n := b.stored(keys)
	if len(data) < n {
		return nil, errors.New("a scan that goes on past its frame")
	}
	if keys {
		b.Key = data[:n:n]
	} else {
		b.Hash = binary.LittleEndian.Uint64(data)
	}
	return data[n:], nil
}

// uvarint takes a number that is at most so large.
func uvarint(data []byte, most uint64) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(data)
	if n <= 0 || v > most {
		return 0, nil, false
	}
	return v, data[n:], true
}
