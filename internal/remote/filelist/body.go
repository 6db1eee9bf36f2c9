package filelist

import (
	"encoding/binary"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sequence"
)

// The body of an entry is
//
//	0   list  u64  the slot of the newest list of files, or of its edit: at most this one; 0 if there is none yet
//
// and then parts, each
//
//	0   kind    u32  1 list of files, 2 chunk of a log, 3 edit of the list of files before
//	4   zero    u32
//	8   length  u64  of what follows
//	16  bytes
//
// A list of files, or an edit, is the first part, in its own slot. A chunk of a log is
//
//	0   log     u64  number of the log file
//	8   offset  u64  of the bytes in it
//	16  bytes
//
// Chunks are in the order in which they were written. A reader cannot skip a part of an unknown kind: a later release
// wrote it.

const (
	bodyHeader  = 8
	partHeader  = 16
	chunkHeader = 16

	partList  = 1
	partChunk = 2
	partEdit  = 3
)

// A Body is what an entry of a store carries.
type Body struct {
	ListSlot uint64 // the slot of the newest list of files, or of its edit
	List     []byte // encoded; nil: it is in an earlier slot, or an edit
	Edit     []byte // encoded; nil: it is in an earlier slot, or a whole list
	Chunks   []Chunk
}

// A Chunk is bytes of a log file.
type Chunk struct {
	Log    uint64
	Offset uint64
	Data   []byte
}

// size returns how many bytes encode returns.
func (b *Body) size() int {
	size := bodyHeader
	for _, part := range [][]byte{b.List, b.Edit} {
		if part != nil {
			size += partHeader + len(part)
		}
	}
	for _, c := range b.Chunks {
		size += partHeader + chunkHeader + len(c.Data)
	}
	return size
}

// Encode returns the body in its format.
func (b *Body) Encode() []byte {
	dst := binary.LittleEndian.AppendUint64(make([]byte, 0, b.size()), b.ListSlot)
	if b.List != nil {
		dst = append(appendPart(dst, partList, len(b.List)), b.List...)
	}
	if b.Edit != nil {
		dst = append(appendPart(dst, partEdit, len(b.Edit)), b.Edit...)
	}
	for _, c := range b.Chunks {
		dst = appendPart(dst, partChunk, chunkHeader+len(c.Data))
		dst = binary.LittleEndian.AppendUint64(dst, c.Log)
		dst = binary.LittleEndian.AppendUint64(dst, c.Offset)
		dst = append(dst, c.Data...)
	}
	return dst
}

func appendPart(dst []byte, kind uint32, length int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, kind)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint64(dst, uint64(length))
}

// DecodeBody decodes the body of the entry in a slot, which is the object with a key. The result aliases it.
func DecodeBody(b []byte, slot uint64, key string) (got Body, err error) {
	u64 := binary.LittleEndian.Uint64
	fail := func(at int, format string, args ...any) (Body, error) {
		return Body{}, base.Corruptf(key, int64(sequence.HeaderSize+at), format, args...)
	}
	if len(b) < bodyHeader {
		return fail(0, "a body of %d bytes", len(b))
	}
	if got.ListSlot = u64(b); got.ListSlot > slot {
		return fail(0, "slot %d has its list of files in slot %d", slot, got.ListSlot)
	}
	for at := bodyHeader; at < len(b); {
		rest := b[at:]
		if len(rest) < partHeader || u64(rest[8:]) > uint64(len(rest)-partHeader) {
			return fail(at, "%d bytes: no room for a part", len(rest))
		}
		kind, end := u64(rest), partHeader+int(u64(rest[8:])) // of the kind, the upper half is zero
		part := rest[partHeader:end:end]
		switch {
		case kind == partList && at == bodyHeader && got.ListSlot == slot:
			got.List = part
		case kind == partEdit && at == bodyHeader && got.ListSlot == slot:
			got.Edit = part
		case kind == partChunk && len(part) >= chunkHeader:
			got.Chunks = append(got.Chunks, Chunk{Log: u64(part), Offset: u64(part[8:]), Data: part[chunkHeader:]})
		case kind > partEdit && kind>>32 == 0:
			return Body{}, fmt.Errorf("%s: %w: a part of kind %d", key, manifest.ErrNewerFormat, kind)
		default:
			return fail(at, "a part of kind %d that cannot be here", kind)
		}
		at += end
	}
	if got.ListSlot == slot && got.List == nil && got.Edit == nil {
		return fail(0, "slot %d should have a list of files", slot)
	}
	return got, nil
}
