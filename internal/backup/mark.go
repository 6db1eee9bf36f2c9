package backup

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A File names a sorted file or a blob file: its number in the store, which no other file of
// either kind has, and the id that is in every checksum of it.
type File struct{ Num, ID uint64 }

// A Mark is what has been backed up.
type Mark struct {
	StoreID  uint64
	BackupID uint64
	Offset   int64 // in the backup's stream: all before it is needed
	LastSeq  base.SeqNum
	files    []File // ascending by number
}

// MarkVersion is the version of marks.
const MarkVersion = 1

const (
	markMagic      = "SIFTMRK\n"
	markHeaderSize = 48
	markFileSize   = 16
)

// SetFiles sets the files that the streams up to the mark hold. It keeps and sorts the slice.
func (m *Mark) SetFiles(files []File) {
	slices.SortFunc(files, compareFiles)
	m.files = slices.Compact(files)
}

// Files returns the files, ascending by number. The caller must not change them.
func (m *Mark) Files() []File { return m.files }

// Has reports whether the streams up to the mark hold a file.
func (m *Mark) Has(f File) bool {
	_, ok := slices.BinarySearchFunc(m.files, f, compareFiles)
	return ok
}

func compareFiles(a, b File) int {
	return cmp.Or(cmp.Compare(a.Num, b.Num), cmp.Compare(a.ID, b.ID))
}

// IsMark reports whether b begins as a mark does. If it does not, it is something else, and no damaged mark.
func IsMark(b []byte) bool { return bytes.HasPrefix(b, []byte(markMagic)) }

// Append appends the encoded mark to dst.
func (m *Mark) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, markMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, MarkVersion)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(m.files)))
	dst = appendUint64s(dst, m.StoreID, m.BackupID, uint64(m.Offset), uint64(m.LastSeq))
	for _, f := range m.files {
		dst = appendUint64s(dst, f.Num, f.ID)
	}
	return binary.LittleEndian.AppendUint32(dst, base.Checksum(0, 0, dst[start:]))
}

// DecodeMark decodes a mark. The result shares no memory with b.
func DecodeMark(b []byte) (*Mark, error) {
	if len(b) < markHeaderSize+4 || string(b[:8]) != markMagic {
		return nil, base.Corruptf("", 0, "this is no backup mark")
	}
	n := len(b) - 4
	if binary.LittleEndian.Uint32(b[n:]) != base.Checksum(0, 0, b[:n]) {
		return nil, base.Corruptf("", 0, "a backup mark's checksum does not match")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v > MarkVersion {
		return nil, fmt.Errorf("backup mark: %w: version %d, this program reads up to %d", manifest.ErrNewerFormat, v,
			MarkVersion)
	}
	count := int(binary.LittleEndian.Uint32(b[12:]))
	if (n-markHeaderSize)%markFileSize != 0 || count != (n-markHeaderSize)/markFileSize {
		return nil, base.Corruptf("", 12, "a backup mark has %d bytes for %d files", len(b), count)
	}
	u := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	m := &Mark{StoreID: u(16), BackupID: u(24), Offset: int64(u(32)), LastSeq: base.SeqNum(u(40))}
	for at := markHeaderSize; at < n; at += markFileSize {
		f := File{u(at), u(at + 8)}
		if k := len(m.files); k > 0 && compareFiles(m.files[k-1], f) >= 0 {
			return nil, base.Corruptf("", int64(at), "a backup mark's files are out of order")
		}
		m.files = append(m.files, f)
	}
	if u(8)&0xffffffff == 0 || m.Offset < 0 || m.LastSeq > base.MaxSeqNum || m.BackupID == 0 {
		return nil, base.Corruptf("", 16, "a backup mark has an impossible field")
	}
	return m, nil
}

func appendUint64s(dst []byte, vs ...uint64) []byte {
	for _, v := range vs {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	return dst
}
