// Package compression makes bytes smaller for files of the store, and holds what they decode to
// against what is stored: no file asks for memory out of proportion to it.
package compression

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// A Kind says how bytes are compressed. What does not shrink by an eighth is stored as it is,
// whatever the setting. The values are on disk.
type Kind uint8

// The kinds. The zero value stands for the default, Snappy.
const (
	Default Kind = 0
	None    Kind = 1
	Snappy  Kind = 2
	Zstd    Kind = 3
)

var names = [...]string{"default", "none", "snappy", "zstd"}

// String returns "none", "snappy" or "zstd".
func (c Kind) String() string {
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("compression(%d)", uint8(c))
}

// Parse is the inverse of String.
func Parse(name string) (Kind, error) {
	if i := slices.Index(names[:], name); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("unknown compression %q: want none, snappy or zstd", name)
}

// Valid reports whether c is one of the kinds.
func (c Kind) Valid() bool { return int(c) < len(names) }

// The decoded size is bounded in proportion to the stored one, so that damaged or hostile bytes
// cannot make a reader allocate without limit. Writers leave what Zstd would make smaller than that
// to Snappy; earlier ones stored it in sorted files, up to MaxZstdExpansion.
const (
	MaxSize          = 1 << 30 // bytes that anything decodes to
	MaxExpansion     = 64      // times the stored size: more than Snappy can, 64 bytes for an element of two
	FreeExpansion    = 1 << 20 // or this many bytes, from any stored size
	MaxZstdExpansion = 1 << 14 // 128 KiB from 13 bytes is the best that the encoder does
)

var errDecodedSize = errors.New("decoded size is not plausible")

// Expands reports whether size bytes are more than a reader expects of stored ones.
func Expands(size, stored int) bool { return size > FreeExpansion && size/MaxExpansion >= stored }

// zstdCoders are made at first use: most stores do without. Both are safe for concurrent use. In a sync.OnceValues
// their types would be in interfaces, and the linker would keep their methods for streams.
var zstdCoders struct {
	once    sync.Once
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	err     error
}

func makeZstdCoders() error {
	c := &zstdCoders
	c.once.Do(func() {
		c.encoder, c.err = zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(1<<20))
		if c.err == nil {
			c.decoder, c.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0),
				zstd.WithDecoderMaxMemory(MaxSize), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
		}
	})
	return c.err
}

// Compress returns src compressed, or src itself if that does not pay, and which of the
// two it is. It works in *buf, which grows as needed and keeps its memory either way.
func Compress(buf *[]byte, src []byte, c Kind) ([]byte, Kind, error) {
	switch c {
	case Snappy:
		if n := s2.MaxEncodedLen(len(src)); cap(*buf) < n {
			*buf = make([]byte, n)
		}
		// The fast encoder: on half-compressible values the better one saved 1 %
		// of space, and took a third of the CPU time of a whole load.
		*buf = s2.EncodeSnappy((*buf)[:cap(*buf)], src)
	case Zstd:
		if err := makeZstdCoders(); err != nil {
			return nil, 0, fmt.Errorf("zstd: %w", err)
		}
		*buf = zstdCoders.encoder.EncodeAll(src, (*buf)[:0])
		if Expands(len(src), len(*buf)) {
			return Compress(buf, src, Snappy)
		}
	default:
		return src, None, nil
	}
	if len(*buf) > len(src)-len(src)/8 {
		return src, None, nil
	}
	return *buf, c, nil
}

// maxUnsized is the largest content of which a zstd frame may not say how large it is: no
// encoder leaves the size out of a longer one.
const maxUnsized = 255

// DecodedSize returns how long src is when it is decoded, or -1 if only decoding can
// tell: at most maxUnsized bytes then.
func DecodedSize(src []byte, c Kind) (int, error) {
	switch c {
	case None:
		return len(src), nil
	case Snappy:
		n, err := s2.DecodedLen(src)
		if err != nil {
			return 0, err
		}
		if n > MaxSize || n/MaxExpansion > len(src) {
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
		case h.FrameContentSize > min(MaxSize, MaxZstdExpansion*uint64(len(src))):
			return 0, errDecodedSize
		}
		return int(h.FrameContentSize), nil
	}
	return 0, fmt.Errorf("unknown compression %d", uint8(c))
}

// Decompress returns the decoded form of src in buf's memory if it has room, in
// memory of its own otherwise. It takes memory for what src says of its size alone.
func Decompress(buf, src []byte, c Kind) ([]byte, error) {
	n, err := DecodedSize(src, c)
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
	case None:
		return buf[:copy(buf[:n], src)], nil
	case Snappy:
		return s2.Decode(buf[:n], src)
	}
	if err := makeZstdCoders(); err != nil {
		return nil, err
	}
	data, err := zstdCoders.decoder.DecodeAll(src, buf[:0:room])
	if err == nil && n >= 0 && len(data) != n {
		err = errDecodedSize
	}
	return data, err
}
