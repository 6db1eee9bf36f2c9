package branch

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/filelist"
)

// A snapshot is an object. All numbers are little-endian.
//
//	0   magic     8 bytes  "SIFTCHK\x00"
//	8   version   u32      1
//	12  key       u32      CRC-32C of the object's key, at place (0, 0)
//	16  store     u64      random number of the store
//	24  number    u64      random; at the end of the key
//	32  branch    u64      the number at the end of the prefix of the branch whose state it is; 0 of the main branch
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
	// SnapshotVersion is the newest version of the format of checkpoints.
	SnapshotVersion = 1
	magic           = "SIFTCHK\x00"
	headerSize      = 80
	sumSize         = 4
)

// A Header is that of a snapshot.
type Header struct {
	Store   uint64
	Number  uint64
	branch  uint64
	created time.Time
	size    int64
	list    uint64 // bytes
	logs    uint64
}

// listEnd returns where the list and its checksum end.
func (h *Header) listEnd() uint64 { return headerSize + h.list + sumSize }

func (h *Header) end() uint64 { return h.listEnd() + h.logs + sumSize }

// Encode returns the object with a key. Sizes and lengths of h do not matter.
func (s *Snapshot) Encode(key string, h Header) []byte {
	list := s.List.Encode()
	b := filelist.Body{Chunks: s.Chunks()}
	logs := b.Encode()
	u32, u64 := binary.LittleEndian.AppendUint32, binary.LittleEndian.AppendUint64
	dst := make([]byte, 0, headerSize+len(list)+len(logs)+2*sumSize)
	dst = append(dst, magic...)
	dst = u32(dst, SnapshotVersion)
	dst = u32(dst, base.Checksum(0, 0, []byte(key)))
	for _, n := range []uint64{h.Store, h.Number, h.branch, uint64(h.created.UnixMicro()), uint64(s.size()),
		uint64(len(list)), uint64(len(logs))} {
		dst = u64(dst, n)
	}
	dst = u32(u32(dst, base.Checksum(0, 0, dst)), 0)
	dst = u32(append(dst, list...), base.Checksum(h.Store, h.Number, list))
	return u32(append(dst, logs...), base.Checksum(h.Store, h.Number+1, logs))
}

func decodeHeader(b []byte, key string) (h Header, err error) {
	if len(b) < headerSize {
		return h, base.Corruptf(key, 0, "an object of %d bytes: no room for a checkpoint", len(b))
	}
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	switch version := u32(b[8:]); {
	case string(b[:8]) != magic:
		return h, base.Corruptf(key, 0, "wrong magic number: not a checkpoint")
	case u32(b[72:]) != base.Checksum(0, 0, b[:72]):
		return h, base.Corruptf(key, 0, "checkpoint header: bad checksum")
	case version > SnapshotVersion:
		return h, fmt.Errorf("%s: %w: version %d, and this release reads up to %d; use a newer release", key,
			manifest.ErrNewerFormat, version, SnapshotVersion)
	case u32(b[12:]) != base.Checksum(0, 0, []byte(key)):
		return h, base.Corruptf(key, 12, "a checkpoint of another name; the object was renamed or copied")
	}
	h = Header{Store: u64(b[16:]), Number: u64(b[24:]), branch: u64(b[32:]),
		created: time.UnixMicro(int64(u64(b[40:]))), size: int64(u64(b[48:])), list: u64(b[56:]), logs: u64(b[64:])}
	if u32(b[8:]) == 0 || h.Store == 0 || h.size < 0 || h.list > 1<<40 || h.logs > 1<<40 || u32(b[76:]) != 0 {
		return h, base.Corruptf(key, 8, "checkpoint header: impossible field")
	}
	return h, nil
}

// decodeList decodes the list of files of an object, of which b is the beginning.
func decodeList(b []byte, key string, h Header) (*Snapshot, error) {
	if uint64(len(b)) < h.listEnd() {
		return nil, base.Corruptf(key, 0, "%d bytes, where there should be %d", len(b), h.listEnd())
	}
	list := b[headerSize : headerSize+h.list]
	if binary.LittleEndian.Uint32(b[headerSize+h.list:]) != base.Checksum(h.Store, h.Number, list) {
		return nil, base.Corruptf(key, headerSize, "bad checksum of the list of files")
	}
	l, num, err := filelist.Decode(list)
	if err != nil {
		return nil, filelist.Malformed(key, err)
	}
	return &Snapshot{List: &l, ManifestNum: num}, nil
}

// decodeSnapshot decodes an object with a key. The logs alias it.
func decodeSnapshot(b []byte, key string) (*Snapshot, Header, error) {
	h, err := decodeHeader(b, key)
	if err != nil {
		return nil, h, err
	}
	s, err := decodeList(b, key, h)
	if err != nil {
		return nil, h, err
	}
	if uint64(len(b)) != h.end() {
		return nil, h, base.Corruptf(key, 0, "%d bytes, where there should be %d", len(b), h.end())
	}
	logs := b[h.listEnd() : h.end()-sumSize]
	if binary.LittleEndian.Uint32(b[h.end()-sumSize:]) != base.Checksum(h.Store, h.Number+1, logs) {
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
