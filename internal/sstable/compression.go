package sstable

import (
	"errors"
	"fmt"
	"slices"
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
	if i := slices.Index(compressionNames[:], name); i >= 0 {
		return Compression(i), nil
	}
	return 0, fmt.Errorf("sstable: unknown compression %q: want none, snappy or zstd", name)
}

// Valid reports whether c is one of the constants.
func (c Compression) Valid() bool { return int(c) < len(compressionNames) }

// A block's decoded size is bounded in proportion to its stored one, so that damaged or
// hostile bytes cannot make a reader allocate without limit. A block that Zstd would make
// smaller than that is left to Snappy; earlier writers stored it, up to maxZstdExpansion.
const (
	maxBlockSize     = 1 << 30
	maxExpansion     = 64      // times the stored size: more than Snappy can, 64 bytes for an element of two
	freeExpansion    = 1 << 20 // or so many bytes, from whatever
	maxZstdExpansion = 1 << 14 // 128 KiB from 13 bytes is the best that the encoder does
)

var (
	errDecodedSize = errors.New("decoded size is not plausible")
	errExpansion   = fmt.Errorf("decoded it would be larger than %d bytes and than %d times its stored size; "+
		"if the file is from a writer of an earlier version, open it with ReaderOptions.AnyExpansion, "+
		"or ingest it with SkipVerify", freeExpansion, maxExpansion)
)

// expands reports whether a block of size bytes is more than a reader expects of so many
// stored ones.
func expands(size, stored int) bool { return size > freeExpansion && size/maxExpansion >= stored }

// The zstd coders are made at first use: they are large, and most stores do
// without. Both are safe for concurrent use.
var (
	zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(1<<20))
	})
	zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBlockSize),
			zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
	})
)

// compress returns src compressed, or src itself if that does not pay, and which of the
// two it is. It works in *buf, which grows as needed and keeps its memory either way.
func compress(buf *[]byte, src []byte, c Compression) ([]byte, Compression, error) {
	switch c {
	case Snappy:
		if n := s2.MaxEncodedLen(len(src)); cap(*buf) < n {
			*buf = make([]byte, n)
		}
		// The fast encoder: on half-compressible values the better one saved 1 %
		// of space, and took a third of the CPU time of a whole load.
		*buf = s2.EncodeSnappy((*buf)[:cap(*buf)], src)
	case Zstd:
		enc, err := zstdEncoder()
		if err != nil {
			return nil, 0, fmt.Errorf("sstable: zstd: %w", err)
		}
		*buf = enc.EncodeAll(src, (*buf)[:0])
		if expands(len(src), len(*buf)) {
			return compress(buf, src, Snappy)
		}
	default:
		return src, NoCompression, nil
	}
	if len(*buf) > len(src)-len(src)/8 {
		return src, NoCompression, nil
	}
	return *buf, c, nil
}

// maxUnsized is the largest content of which a zstd frame may not say how large it is: no
// encoder leaves the size out of a longer one.
const maxUnsized = 255

// decodedSize returns how long src is when it is decoded, or -1 if only decoding can
// tell: at most maxUnsized bytes then.
func decodedSize(src []byte, c Compression) (int, error) {
	switch c {
	case NoCompression:
		return len(src), nil
	case Snappy:
		n, err := s2.DecodedLen(src)
		if err != nil {
			return 0, err
		}
		if n > maxBlockSize || n/maxExpansion > len(src) {
			return 0, errDecodedSize
		}
		return n, nil
	case Zstd:
		var h zstd.Header
		switch err := h.Decode(src); {
		case err != nil:
			return 0, err
		case h.Skippable:
			return 0, errDecodedSize
		case !h.HasFCS:
			return -1, nil
		case h.FrameContentSize > min(maxBlockSize, maxZstdExpansion*uint64(len(src))):
			return 0, errDecodedSize
		}
		return int(h.FrameContentSize), nil
	}
	return 0, fmt.Errorf("unknown compression %d", uint8(c))
}

// decompress returns the decoded form of src in buf's memory if it has room, in
// memory of its own otherwise. It takes memory for what src says of its size alone.
func decompress(buf, src []byte, c Compression) ([]byte, error) {
	n, err := decodedSize(src, c)
	if err != nil {
		return nil, err
	}
	room := n
	if n < 0 {
		room = maxUnsized
	}
	if cap(buf) < room {
		buf = make([]byte, room)
	}
	switch c {
	case NoCompression:
		return buf[:copy(buf[:n], src)], nil
	case Snappy:
		return s2.Decode(buf[:n], src)
	}
	dec, err := zstdDecoder()
	if err != nil {
		return nil, err
	}
	data, err := dec.DecodeAll(src, buf[:0:room])
	if err == nil && n >= 0 && len(data) != n {
		err = errDecodedSize
	}
	return data, err
}
