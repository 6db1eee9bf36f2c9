package remote

import (
	"encoding/binary"

	"github.com/siftkv/siftkv/internal/base"
)

// The body of an entry of the log is one or more chunks, in the order in which they were written:
//
//	0   log      u64  number of the log file
//	8   offset   u64  of the bytes in it
//	16  length   u64
//	24  bytes

const chunkHeader = 24

// A chunk is bytes of a log file.
type chunk struct {
	log    uint64
	offset uint64
	data   []byte
}

func encodeChunks(chunks []chunk) []byte {
	size := 0
	for _, c := range chunks {
		size += chunkHeader + len(c.data)
	}
	b := make([]byte, 0, size)
	for _, c := range chunks {
		b = binary.LittleEndian.AppendUint64(b, c.log)
		b = binary.LittleEndian.AppendUint64(b, c.offset)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(c.data)))
		b = append(b, c.data...)
	}
	return b
}

// decodeChunks calls f for each chunk of an object's body; the data aliases that.
func decodeChunks(body []byte, key string, f func(chunk) error) error {
	for at := 0; at < len(body); {
		rest := body[at:]
		if len(rest) < chunkHeader {
			return base.Corruptf(key, int64(headerSize+at), "%d bytes: no room for a chunk of a log", len(rest))
		}
		u64 := binary.LittleEndian.Uint64
		c, length := chunk{log: u64(rest), offset: u64(rest[8:])}, u64(rest[16:])
		rest = rest[chunkHeader:]
		if length > uint64(len(rest)) {
			return base.Corruptf(key, int64(headerSize+at), "a chunk of %d bytes in %d", length, len(rest))
		}
		c.data = rest[:length:length]
		if err := f(c); err != nil {
			return err
		}
		at += chunkHeader + int(length)
	}
	return nil
}
