package remote

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/filelist"
)

// A state that was saved is an object. All numbers are little-endian.
//
//	0   magic     8 bytes  "SIFTCHK\x00"
//	8   version   u32      1
//	12  key       u32      CRC-32C of the object's key, at place (0, 0)
//	16  store     u64      random number of the store
//	24  number    u64      random; at the end of the key
//	32  branch    u64      the number at the end of the site whose state it is; 0 of the main branch
//	40  created   i64      microseconds since 1970 UTC, by the clock of its creator
//	48  size      u64      bytes of sorted files, blob files and logs that the state has
//	56  list      u64      length of the list of files
//	64  logs      u64      length of the logs
//	72  checksum  u32      of bytes 0..71, at place (0, 0)
//	76  zero      u32
//	80  the list of files
//	..  checksum  u32      of the list, at place (store, number)
//	..  the logs: the body of an entry in slot 1 without a list of files
//	..  checksum  u32      of the logs, at place (store, number + 1)
//
// "At place" is what it means in logs: see internal/wal. The beginning of the object is enough to learn which files the
// state needs.

const (
	savedMagic   = "SIFTCHK\x00"
	savedVersion = 1
	savedHeader  = 80
	savedSum     = 4
)

// A savedHead is the header of a state that was saved.
type savedHead struct {
	store   uint64
	number  uint64
	branch  uint64
	created time.Time
	size    int64
	list    uint64 // bytes
	logs    uint64
}

// listEnd returns where the list and its checksum end.
func (h *savedHead) listEnd() uint64 { return savedHeader + h.list + savedSum }

// end returns the size of the object.
func (h *savedHead) end() uint64 { return h.listEnd() + h.logs + savedSum }

// encode returns the object with a key. Sizes and lengths of h do not matter.
func (s *saved) encode(key string, h savedHead) []byte {
	list := s.list.Encode()
	b := filelist.Body{Chunks: s.chunks()}
	logs := b.Encode()
	u32, u64 := binary.LittleEndian.AppendUint32, binary.LittleEndian.AppendUint64
	dst := make([]byte, 0, savedHeader+len(list)+len(logs)+2*savedSum)
	dst = append(dst, savedMagic...)
	dst = u32(dst, savedVersion)
	dst = u32(dst, base.Checksum(0, 0, []byte(key)))
	for _, n := range []uint64{h.store, h.number, h.branch, uint64(h.created.UnixMicro()), uint64(s.size()),
		uint64(len(list)), uint64(len(logs))} {
		dst = u64(dst, n)
	}
	dst = u32(u32(dst, base.Checksum(0, 0, dst)), 0)
	dst = u32(append(dst, list...), base.Checksum(h.store, h.number, list))
	return u32(append(dst, logs...), base.Checksum(h.store, h.number+1, logs))
}

// decodeSavedHead decodes the header of the object with a key.
func decodeSavedHead(b []byte, key string) (h savedHead, err error) {
	if len(b) < savedHeader {
		return h, base.Corruptf(key, 0, "an object of %d bytes: no room for a checkpoint", len(b))
	}
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	switch version := u32(b[8:]); {
	case string(b[:8]) != savedMagic:
		return h, base.Corruptf(key, 0, "wrong magic number: not a checkpoint")
	case u32(b[72:]) != base.Checksum(0, 0, b[:72]):
		return h, base.Corruptf(key, 0, "checkpoint header: bad checksum")
	case version > savedVersion:
		return h, fmt.Errorf("%s: %w: version %d, and this release reads up to %d; use a newer release", key,
			manifest.ErrNewerFormat, version, savedVersion)
	case u32(b[12:]) != base.Checksum(0, 0, []byte(key)):
		return h, base.Corruptf(key, 12, "a checkpoint of another name; the object was renamed or copied")
	}
	h = savedHead{store: u64(b[16:]), number: u64(b[24:]), branch: u64(b[32:]),
		created: time.UnixMicro(int64(u64(b[40:]))), size: int64(u64(b[48:])), list: u64(b[56:]), logs: u64(b[64:])}
	if u32(b[8:]) == 0 || h.store == 0 || h.size < 0 || h.list > 1<<40 || h.logs > 1<<40 || u32(b[76:]) != 0 {
		return h, base.Corruptf(key, 8, "checkpoint header: impossible field")
	}
	return h, nil
}

// decodeSavedList decodes the list of files of an object, of which b is the beginning.
func decodeSavedList(b []byte, key string, h savedHead) (*saved, error) {
	if uint64(len(b)) < h.listEnd() {
		return nil, base.Corruptf(key, 0, "%d bytes, where there should be %d", len(b), h.listEnd())
	}
	list := b[savedHeader : savedHeader+h.list]
	if binary.LittleEndian.Uint32(b[savedHeader+h.list:]) != base.Checksum(h.store, h.number, list) {
		return nil, base.Corruptf(key, savedHeader, "bad checksum of the list of files")
	}
	l, num, err := filelist.Decode(list)
	if err != nil {
		return nil, filelist.Malformed(key, err)
	}
	return &saved{list: &l, num: num}, nil
}

// decodeSaved decodes an object with a key. The logs alias it.
func decodeSaved(b []byte, key string) (*saved, savedHead, error) {
	h, err := decodeSavedHead(b, key)
	if err != nil {
		return nil, h, err
	}
	s, err := decodeSavedList(b, key, h)
	if err != nil {
		return nil, h, err
	}
	if uint64(len(b)) != h.end() {
		return nil, h, base.Corruptf(key, 0, "%d bytes, where there should be %d", len(b), h.end())
	}
	logs := b[h.listEnd() : h.end()-savedSum]
	if binary.LittleEndian.Uint32(b[h.end()-savedSum:]) != base.Checksum(h.store, h.number+1, logs) {
		return nil, h, base.Corruptf(key, int64(h.listEnd()), "bad checksum of the logs")
	}
	body, err := filelist.DecodeBody(logs, 1, key)
	if err != nil {
		return nil, h, err
	}
	for i, c := range body.Chunks {
		if body.ListSlot != 0 || c.Offset != 0 || i > 0 && c.Log <= body.Chunks[i-1].Log {
			return nil, h, base.Corruptf(key, int64(h.listEnd()), "log %d is not there as a whole", c.Log)
		}
		s.logs = append(s.logs, filelist.Log{Number: c.Log, Data: c.Data})
	}
	return s, h, nil
}
