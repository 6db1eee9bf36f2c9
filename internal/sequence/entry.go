package sequence

import (
	"encoding/binary"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// An entry is an object. All numbers are little-endian. It begins with a header:
//
//	0   magic     8 bytes  "SIFTSEQ\x00"
//	8   version   u32      1
//	12  kind      u32      1 data, 2 fence
//	16  sequence  u32      CRC-32C of the sequence's prefix, at place (0, 0)
//	20  zero      u32
//	24  store     u64      of data: random number of the store, not 0; of a fence: 0
//	32  slot      u64      1 or more
//	40  epoch     u64      the slot of the writer's fence, at most this one
//	48  nonce     16 bytes of the writer, random
//	64  value     u64      of data: the body's length; of a fence: the slot of the newest data before it, 0 if
//	                         there is none
//	72  checksum  u32      of bytes 0..71, at place (0, 0)
//	76  zero      u32
//
// A fence is a header and no more, 80 bytes. Data has at least 84, so a listing distinguishes them:
//
//	80      body
//	80 + n  checksum  u32  of the body, at place (store, slot)
//
// "At place" is what it means in logs: see internal/wal. Magic, version and the header's checksum keep their places
// in all versions.

const (
	// FormatVersion is the newest version of the format.
	FormatVersion = 1
	magic         = "SIFTSEQ\x00"

	kindData  = 1
	kindFence = 2

	sumSize = 4
)

// Sizes of the header of an entry, behind which data has its body, and of a fence.
const (
	HeaderSize = 80
	FenceSize  = HeaderSize
)

// An Entry is what a slot holds.
type Entry struct {
	Store uint64 // random number of the store; of a fence: 0
	Slot  uint64
	Epoch uint64 // the slot of the writer's fence
	Fence bool
	Body  []byte // of data; the caller's to keep

	nonce  [16]byte
	newest uint64 // of a fence: the slot of the newest data before it, 0 if there is none
}

// encode returns the entry as an object of the sequence with a tag.
func (e *Entry) encode(tag uint32) []byte {
	kind, value, size := uint32(kindData), uint64(len(e.Body)), HeaderSize+len(e.Body)+sumSize
	if e.Fence {
		kind, value, size = kindFence, e.newest, FenceSize
	}
	b := make([]byte, 0, size)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, FormatVersion)
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = binary.LittleEndian.AppendUint32(b, tag)
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, n := range []uint64{e.Store, e.Slot, e.Epoch} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = append(b, e.nonce[:]...)
	b = binary.LittleEndian.AppendUint64(b, value)
	b = binary.LittleEndian.AppendUint32(b, base.Checksum(0, 0, b))
	b = binary.LittleEndian.AppendUint32(b, 0)
	if e.Fence {
		return b
	}
	b = append(b, e.Body...)
	return binary.LittleEndian.AppendUint32(b, base.Checksum(e.Store, e.Slot, e.Body))
}

// decodeEntry returns what an object holds that should be a slot's in the sequence with a tag. The body aliases b.
func decodeEntry(b []byte, key string, tag uint32, slot uint64) (Entry, error) {
	kind, value, err := decodeHeader(b, key)
	if err != nil {
		return Entry{}, err
	}
	u64 := binary.LittleEndian.Uint64
	e := Entry{Slot: u64(b[32:]), Epoch: u64(b[40:]), Fence: kind == kindFence, Store: u64(b[24:])}
	copy(e.nonce[:], b[48:])
	switch {
	case binary.LittleEndian.Uint32(b[16:]) != tag:
		return Entry{}, base.Corruptf(key, 16, "an entry of another sequence; the object was renamed or copied")
	case e.Slot != slot:
		return Entry{}, base.Corruptf(key, 32, "this is slot %d, not %d; the object was renamed or copied", e.Slot,
			slot)
	case e.Epoch == 0 || e.Epoch > slot || e.Fence != (e.Epoch == slot) || e.Fence != (e.Store == 0):
		return Entry{}, base.Corruptf(key, 24, "entry header: impossible field")
	case e.Fence && (value >= slot || len(b) != FenceSize):
		return Entry{}, base.Corruptf(key, 64, "slot %d: a fence of %d bytes, after data in slot %d", slot, len(b),
			value)
	case e.Fence:
		e.newest = value
		return e, nil
	case len(b) < HeaderSize+sumSize || value != uint64(len(b)-HeaderSize-sumSize):
		return Entry{}, base.Corruptf(key, 64, "an object of %d bytes for a body of %d", len(b), value)
	}
	end := len(b) - sumSize
	e.Body = b[HeaderSize:end:end]
	if binary.LittleEndian.Uint32(b[end:]) != base.Checksum(e.Store, e.Slot, e.Body) {
		return Entry{}, base.Corruptf(key, HeaderSize, "bad checksum of a body of %d bytes", len(e.Body))
	}
	return e, nil
}

// decodeHeader checks what the header says by itself.
func decodeHeader(b []byte, key string) (kind uint32, value uint64, err error) {
	if len(b) < HeaderSize {
		return 0, 0, base.Corruptf(key, 0, "an object of %d bytes: no room for an entry", len(b))
	}
	u32 := binary.LittleEndian.Uint32
	kind = u32(b[12:])
	switch version := u32(b[8:]); {
	case string(b[:8]) != magic:
		return 0, 0, base.Corruptf(key, 0, "wrong magic number: not an entry")
	case u32(b[72:]) != base.Checksum(0, 0, b[:72]):
		return 0, 0, base.Corruptf(key, 0, "entry header: bad checksum")
	case version > FormatVersion:
		return 0, 0, fmt.Errorf("%s: %w: version %d, and this release reads up to %d; open it with a newer release",
			key, manifest.ErrNewerFormat, version, FormatVersion)
	case version == 0 || u32(b[20:]) != 0 || u32(b[76:]) != 0 || kind != kindData && kind != kindFence:
		return 0, 0, base.Corruptf(key, 0, "entry header: impossible field")
	}
	return kind, binary.LittleEndian.Uint64(b[64:]), nil
}

// sizeOf returns the size of an object that begins with b, if b tells.
func sizeOf(b []byte) (uint64, bool) {
	kind, value, err := decodeHeader(b, "")
	if err != nil || kind == kindFence || value > 1<<62 {
		return 0, false
	}
	return HeaderSize + value + sumSize, true
}
