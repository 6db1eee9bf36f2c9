package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/locallog"
)

// A fileList is what a store's directory has, except the contents of sorted files, blob files and logs. Its encoding is
//
//	uvarint  the format's version: 1, or 2 if there are blob files
//	bytes    CURRENT
//	bytes    the manifest that CURRENT names
//	uvarint  the slot of the first entry that logs need
//	uvarint  the number of logs; then the number of each, as the difference to the one before
//	uvarint  the number of authors; then for each the site (bytes), the epoch, and 8 bytes of nonce
//	uvarint  the number of sorted files; then for each the number, as above, which of them wrote it, and the size
//	uvarint  in version 2, the number of blob files, not 0; then for each the same
//	uvarint  the id of the directory, on some machine's disk, that has the logs; 0: they are in the object store
//	uvarint  the epoch of the writer of the list
//	bytes    what that writer calls the directory: for people
//	uvarint  the number of logs in the directory that have records; then the number of each, as above
//	uvarint  the number of directories whose logs have ended; then for each the id, and the epoch of its last writer
//
// where bytes are preceded by their length. It is in an entry of a sequence, which has a checksum.
//
// A release that knows version 1 only would lose blob files, so the version makes it refuse such a store. It cannot
// read such a checkpoint either, and then deletes nothing.
type fileList struct {
	current  string // the text of CURRENT
	manifest []byte
	logStart uint64
	logs     []uint64        // in ascending order
	files    map[uint64]file // by number
	home     locallog.Location
}

// Versions of lists, without blob files and with them.
const (
	listVersion     = 1
	listVersionBlob = 2
)

func (l *fileList) encode() []byte {
	version := uint64(listVersion)
	if l.hasBlobs() {
		version = listVersionBlob
	}
	dst := binary.AppendUvarint(nil, version)
	for _, b := range [][]byte{[]byte(l.current), l.manifest} {
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	dst = binary.AppendUvarint(dst, l.logStart)
	dst = appendNumbers(dst, l.logs)
	dst = l.appendFiles(dst)
	dst = binary.AppendUvarint(dst, l.home.ID)
	dst = binary.AppendUvarint(dst, l.home.Epoch)
	dst = append(binary.AppendUvarint(dst, uint64(len(l.home.Place))), l.home.Place...)
	dst = appendNumbers(dst, l.home.Logs)
	dst = binary.AppendUvarint(dst, uint64(len(l.home.Ended)))
	for _, e := range l.home.Ended {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, e.ID), e.Epoch)
	}
	return dst
}

// hasBlobs reports whether there are blob files.
func (l *fileList) hasBlobs() bool {
	for _, f := range l.files {
		if f.blob {
			return true
		}
	}
	return false
}

// appendFiles appends the authors, the sorted files, and the blob files if there are any.
func (l *fileList) appendFiles(dst []byte) []byte {
	nums := slices.Sorted(maps.Keys(l.files))
	index := map[author]uint64{}
	var authors []author
	var tables, blobs []uint64
	for _, num := range nums {
		if l.files[num].blob {
			blobs = append(blobs, num)
		} else {
			tables = append(tables, num)
		}
		o := l.files[num].author
		if _, there := index[o]; !there {
			index[o] = uint64(len(authors))
			authors = append(authors, o)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(authors)))
	for _, o := range authors {
		dst = append(binary.AppendUvarint(dst, uint64(len(o.site))), o.site...)
		dst = binary.AppendUvarint(dst, o.epoch)
		dst = binary.LittleEndian.AppendUint64(dst, o.nonce)
	}
	dst = l.appendFilesOf(dst, tables, index)
	if len(blobs) > 0 {
		dst = l.appendFilesOf(dst, blobs, index)
	}
	return dst
}

// appendFilesOf appends the files with some numbers.
func (l *fileList) appendFilesOf(dst []byte, nums []uint64, authors map[author]uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(nums)))
	last := uint64(0)
	for _, num := range nums {
		f := l.files[num]
		dst = binary.AppendUvarint(dst, num-last)
		dst = binary.AppendUvarint(dst, authors[f.author])
		dst = binary.AppendUvarint(dst, uint64(f.size))
		last = num
	}
	return dst
}

// appendNumbers appends numbers in ascending order.
func appendNumbers(dst []byte, nums []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(nums)))
	last := uint64(0)
	for _, num := range nums {
		dst = binary.AppendUvarint(dst, num-last)
		last = num
	}
	return dst
}

var errList = errors.New("the list of files is malformed")

// decodeFileList decodes a list, which shares no memory with b, and returns the number of the
// manifest in force.
func decodeFileList(b []byte) (l fileList, num uint64, err error) {
	if l, err = decodeFiles(b); err == nil {
		num, err = manifest.ParseCurrent(l.current)
	}
	return l, num, err
}

// decodeFiles decodes a list whose CURRENT may be anything.
func decodeFiles(b []byte) (l fileList, err error) {
	d := listDecoder{b: b}
	version := d.uvarint()
	if version != listVersion && version != listVersionBlob && !d.bad {
		return l, fmt.Errorf("%w: a list of files has version %d", manifest.ErrNewerFormat, version)
	}
	l.current, l.manifest = string(d.bytes()), slices.Clone(d.bytes())
	l.logStart = d.uvarint()
	l.logs = d.numbers()
	l.files = d.files(version == listVersionBlob)
	l.home = locallog.Location{ID: d.uvarint(), Epoch: d.uvarint()}
	l.home.Place = string(d.bytes())
	l.home.Logs = d.numbers()
	for n := d.count(2); n > 0 && !d.bad; n-- {
		l.home.Ended = append(l.home.Ended, locallog.EndedLog{ID: d.uvarint(), Epoch: d.uvarint()})
	}
	if d.bad || len(d.b) > 0 {
		return fileList{}, errList
	}
	return l, nil
}

// files returns the sorted files, and the blob files if there are any.
func (d *listDecoder) files(blobs bool) map[uint64]file {
	var authors []author
	for n := d.count(10); n > 0 && !d.bad; n-- {
		o := author{site: site(d.bytes()), epoch: d.uvarint(), nonce: d.u64()}
		d.bad = d.bad || !o.site.check()
		authors = append(authors, o)
	}
	files := map[uint64]file{}
	d.filesOf(authors, files, false)
	if blobs {
		before := len(files)
		d.filesOf(authors, files, true)
		d.bad = d.bad || len(files) == before
	}
	return files
}

// filesOf adds the sorted files, or the blob files. A number that is there already is bad.
func (d *listDecoder) filesOf(authors []author, files map[uint64]file, blob bool) {
	for last, n := uint64(0), d.count(3); n > 0 && !d.bad; n-- {
		last = d.after(last)
		of, size := d.uvarint(), d.uvarint()
		_, twice := files[last]
		if of >= uint64(len(authors)) || size > math.MaxInt64 || twice {
			d.b, d.bad = nil, true
			break
		}
		files[last] = file{author: authors[of], size: int64(size), blob: blob}
	}
}

// A listDecoder takes values off the front of b. After bad, all are zero.
type listDecoder struct {
	b   []byte
	bad bool
}

func (d *listDecoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *listDecoder) u64() uint64 {
	if len(d.b) < 8 {
		d.b, d.bad = nil, true
		return 0
	}
	v := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

func (d *listDecoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

// count returns a number of items, each of which has "least" bytes or more.
func (d *listDecoder) count(least uint64) uint64 {
	n := d.uvarint()
	if n > uint64(len(d.b))/least {
		d.b, d.bad = nil, true
		return 0
	}
	return n
}

// numbers is the inverse of appendNumbers.
func (d *listDecoder) numbers() (nums []uint64) {
	for last, n := uint64(0), d.count(1); n > 0 && !d.bad; n-- {
		last = d.after(last)
		nums = append(nums, last)
	}
	return nums
}

// after returns a number that is greater than last.
func (d *listDecoder) after(last uint64) uint64 {
	delta := d.uvarint()
	if delta == 0 || last+delta < last {
		d.b, d.bad = nil, true
		return 0
	}
	return last + delta
}
