package lookuptrace

import "encoding/binary"

// A chunk is a frame of lookups, or of scans, in the making.
type chunk struct {
	data  []byte // frame header, chunk header, records
	kind  byte
	count uint32
	last  uint64 // time of the last record
}

// newChunk returns a chunk with room for a whole frame.
func newChunk() *chunk { return &chunk{data: make([]byte, 0, frameSize)} }

// begin begins a record of at most size bytes in addition to its time, which is not before that of
// the last one. It reports false, and appends nothing, if there is no room.
func (c *chunk) begin(at uint64, size int) bool {
	if c.count == 0 {
		c.data = c.data[:frameHeaderSize+chunkHeaderSize]
		binary.LittleEndian.PutUint64(c.data[frameHeaderSize:], at)
		c.last = at
	}
	if cap(c.data)-len(c.data) < binary.MaxVarintLen64+size {
		return false
	}
	c.data = binary.AppendUvarint(c.data, at-c.last)
	c.last = at
	c.count++
	return true
}

// add appends a lookup that ended at a time not before that of the last one. It reports false, and appends nothing, if
// there is no room. Its key is either the key or 8 bytes of hash; size is that of the key.
func (c *chunk) add(at uint64, key []byte, size int, bits uint64) bool {
	if !c.begin(at, binary.MaxVarintLen64+len(key)) {
		return false
	}
	c.data = binary.AppendUvarint(c.data, uint64(size)<<2|bits)
	c.data = append(c.data, key...)
	return true
}

// addScan appends a scan that ended at a time not before that of the last one. Its bounds must have
// keys or hashes as the trace does. It reports false, and appends nothing, if there is no room.
func (c *chunk) addScan(at uint64, s *Scan, keys bool) bool {
	if !c.begin(at, 5*binary.MaxVarintLen64+s.Start.stored(keys)+s.End.stored(keys)) {
		return false
	}
	c.data = binary.AppendUvarint(c.data, s.bits())
	c.data = binary.AppendUvarint(c.data, s.Entries)
	if s.Start.Set && s.End.Set {
		c.data = binary.AppendUvarint(c.data, uint64(s.Common))
	}
	c.data = s.Start.append(c.data, keys)
	c.data = s.End.append(c.data, keys)
	return true
}

// seal makes the chunk a frame for an offset.
func (c *chunk) seal(id, offset, dropped uint64) []byte {
	binary.LittleEndian.PutUint64(c.data[frameHeaderSize+8:], dropped)
	binary.LittleEndian.PutUint32(c.data[frameHeaderSize+16:], c.count)
	sealFrame(c.data, c.kind, id, offset)
	return c.data
}
