package sstable

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Compression says how data blocks are compressed. A block that does not shrink
// by an eighth is stored as it is, whatever the setting. The values are on disk.
type Compression uint8

// The compressions. The zero value stands for the default, Snappy.
const (
	DefaultCompression Compression = 0
	NoCompression      Compression = 1
	Snappy             Compression = 2
	Zstd               Compression = 3
)

var compressionNames = [...]string{"default", "none", "snappy", "zstd"}

// String returns "none", "snappy" or "zstd".
func (c Compression) String() string {
	if int(c) < len(compressionNames) {
		return compressionNames[c]
	}
	return fmt.Sprintf("compression(%d)", uint8(c))
}

// ParseCompression is the inverse of String.
func ParseCompression(name string) (Compression, error) {
	for i, n := range compressionNames {
		if n == name {
			return Compression(i), nil
		}
	}
	return 0, fmt.Errorf("sstable: unknown compression %q: want none, snappy or zstd", name)
}

// Valid reports whether c is one of the constants.
func (c Compression) Valid() bool { return int(c) < len(compressionNames) }

// maxBlockSize bounds a block's decoded size, so that damaged or hostile bytes
// cannot make a reader allocate without limit.
const maxBlockSize = 1 << 30

var errDecodedSize = errors.New("decoded size is not plausible")

// The zstd coders are made at first use: they are large, and most stores do
// without. Both are safe for concurrent use.
var (
	zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	})
	zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBlockSize), zstd.WithDecoderLowmem(true))
	})
)

// compress returns src compressed into buf's memory, or src itself if that does
// not pay, and which of the two it is.
func compress(buf, src []byte, c Compression) ([]byte, Compression, error) {
	switch c {
	case Snappy:
		if n := s2.MaxEncodedLen(len(src)); cap(buf) < n {
			buf = make([]byte, n)
		}
		// The fast encoder: on half-compressible values the better one saved 1 %
		// of space, and took a third of the CPU time of a whole load.
		buf = s2.EncodeSnappy(buf[:cap(buf)], src)
	case Zstd:
		enc, err := zstdEncoder()
		if err != nil {
			return nil, 0, fmt.Errorf("sstable: zstd: %w", err)
		}
		buf = enc.EncodeAll(src, buf[:0])
	default:
		return src, NoCompression, nil
	}
	if len(buf) > len(src)-len(src)/8 {
		return src, NoCompression, nil
	}
	return buf, c, nil
}

// decodedSize returns how long src is when it is decoded, or -1 if only decoding can
// tell.
func decodedSize(src []byte, c Compression) (int, error) {
	switch c {
	case NoCompression:
		return len(src), nil
	case Snappy:
		n, err := s2.DecodedLen(src)
		if err != nil {
			return 0, err
		}
		// A snappy element of two bytes or more yields 64 bytes at the most.
		if n > maxBlockSize || n > 64*len(src) {
			return 0, errDecodedSize
		}
		return n, nil
	case Zstd:
		return -1, nil
	}
	return 0, fmt.Errorf("unknown compression %d", uint8(c))
}

// decompress returns the decoded form of src in buf's memory if it has room, in
// memory of its own otherwise.
func decompress(buf, src []byte, c Compression) ([]byte, error) {
	n, err := decodedSize(src, c)
	if err != nil {
		return nil, err
	}
	if c == Zstd {
		dec, err := zstdDecoder()
		if err != nil {
			return nil, err
		}
		return dec.DecodeAll(src, buf[:0])
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	if c == NoCompression {
		return buf[:copy(buf[:n], src)], nil
	}
	return s2.Decode(buf[:n], src)
}
