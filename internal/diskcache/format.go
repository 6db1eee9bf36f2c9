package diskcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// A directory of a disk cache has a file LOCK, and segments: files named pages-NNNNNNNN, with a number of eight
// hexadecimal digits that grows. A segment is written from front to back. All integers are little-endian.
//
//	segment = "siftpgs1" number:8 page* [index]
//	page    = sum:8 nameLength:4 dataLength:4 offset:8 name data
//	index   = (key:8 position:4 length:4)* sum:8 count:4 reserved:4 "siftpgsx"
//
// A page is a piece of the object called name, at an offset. Its sum is the XXH64 of all that comes after it in the
// page. The key of a page is the XXH64 of its offset, in eight bytes, and its name. The index lists all pages by their
// key, position in the file and length with header and name; its sum is the XXH64 of the list and the count. Without an
// index, which is written last, the pages count up to the first that is not whole.
//
// Nothing is synced: if a power cut or another program damages a file, a sum does not fit, and the page is fetched
// again. Names and offsets are in the sum, so that a page in another's place is none. The sums do not protect from
// forged pages. The blocks of a table have checksums of their own, bound to the table's id, but writers to the
// directory must be trusted.
const (
	segmentMagic  = "siftpgs1"
	indexMagic    = "siftpgsx"
	segmentHeader = 8 + 8
	pageHeader    = 8 + 4 + 4 + 8
	indexEntry    = 8 + 4 + 4
	indexTrailer  = 8 + 4 + 4 + 8

	maxPageName = 2 << 10
	maxPageSize = 1 << 20
)

// A pageKey says which piece of which object a page is.
type pageKey struct {
	name   string
	offset int64
}

// hash returns the key in the index.
func (k pageKey) hash() uint64 {
	var d xxhash.Digest
	d.Reset()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(k.offset))
	_, _ = d.Write(b[:])
	_, _ = d.WriteString(k.name)
	return d.Sum64()
}

// pageLength returns how long a page of n bytes is in a segment.
func (k pageKey) pageLength(n int) int { return pageHeader + len(k.name) + n }

func appendPage(dst []byte, k pageKey, data []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(k.name)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(k.offset))
	dst = append(append(dst, k.name...), data...)
	binary.LittleEndian.PutUint64(dst[at:], xxhash.Sum64(dst[at+8:]))
	return dst
}

var (
	errPageSum    = errors.New("a page's checksum is wrong")
	errPageHeader = errors.New("a page's header makes no sense")
)

// decodePageHeader returns how long the page is that begins with b, which has pageHeader bytes: at most
// pageHeader + maxPageName + maxPageSize.
func decodePageHeader(b []byte) (length int, err error) {
	name, data := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	if name == 0 || name > maxPageName || data == 0 || data > maxPageSize {
		return 0, fmt.Errorf("%w: a name of %d bytes, data of %d", errPageHeader, name, data)
	}
	return pageHeader + int(name) + int(data), nil
}

// decodePage decodes b, which is a page and nothing else. The data is b's.
func decodePage(b []byte) (k pageKey, data []byte, err error) {
	if len(b) < pageHeader {
		return k, nil, errPageHeader
	}
	length, err := decodePageHeader(b)
	if err == nil && length != len(b) {
		err = errPageHeader
	}
	if err == nil && xxhash.Sum64(b[8:]) != binary.LittleEndian.Uint64(b) {
		err = errPageSum
	}
	if err != nil {
		return k, nil, err
	}
	name := int(binary.LittleEndian.Uint32(b[8:]))
	k.offset = int64(binary.LittleEndian.Uint64(b[16:]))
	k.name = string(b[pageHeader : pageHeader+name])
	return k, b[pageHeader+name:], nil
}

type listedPage struct {
	key              uint64
	position, length uint32
}

func appendSegmentHeader(dst []byte, number uint32) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, segmentMagic...), uint64(number))
}

func appendIndex(dst []byte, pages []listedPage) []byte {
	at := len(dst)
	for _, p := range pages {
		dst = binary.LittleEndian.AppendUint64(dst, p.key)
		dst = binary.LittleEndian.AppendUint32(dst, p.position)
		dst = binary.LittleEndian.AppendUint32(dst, p.length)
	}
	sum := indexSum(dst[at:], uint32(len(pages)))
	dst = binary.LittleEndian.AppendUint64(dst, sum)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(pages)))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return append(dst, indexMagic...)
}

func indexSum(list []byte, count uint32) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(list)
	_, _ = d.Write(binary.LittleEndian.AppendUint32(nil, count))
	return d.Sum64()
}

var errIndex = errors.New("the segment has no index, or it is damaged")

// decodeIndexTrailer returns the length of the index that ends with b, which has indexTrailer bytes, in a segment of
// size bytes: less than that.
func decodeIndexTrailer(b []byte, size int64) (length int64, err error) {
	length = indexTrailer + indexEntry*int64(binary.LittleEndian.Uint32(b[8:]))
	if string(b[16:]) != indexMagic || length > size-segmentHeader || size > math.MaxUint32 {
		return 0, errIndex
	}
	return length, nil
}

// decodeIndex decodes b, which is an index and nothing else, of a segment of size bytes.
func decodeIndex(b []byte, size int64) ([]listedPage, error) {
	if len(b) < indexTrailer {
		return nil, errIndex
	}
	list, trailer := b[:len(b)-indexTrailer], b[len(b)-indexTrailer:]
	length, err := decodeIndexTrailer(trailer, size)
	if err != nil || length != int64(len(b)) ||
		indexSum(list, uint32(len(list)/indexEntry)) != binary.LittleEndian.Uint64(trailer) {
		return nil, errIndex
	}
	pages := make([]listedPage, 0, len(list)/indexEntry)
	for ; len(list) > 0; list = list[indexEntry:] {
		p := listedPage{binary.LittleEndian.Uint64(list), binary.LittleEndian.Uint32(list[8:]),
			binary.LittleEndian.Uint32(list[12:])}
		if p.position < segmentHeader || int64(p.position)+int64(p.length) > size-length {
			return nil, errIndex
		}
		pages = append(pages, p)
	}
	return pages, nil
}
