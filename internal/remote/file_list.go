package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/siftkv/siftkv/internal/manifest"
)

// A fileList is what a store's directory has, but for sorted files' and logs' contents. Its
// encoding is
//
//	uvarint  the format's version, 1
//	bytes    CURRENT
//	bytes    the manifest that CURRENT names
//	uvarint  the slot of the first entry that logs need
//	uvarint  the number of logs; then the number of each, as the difference to the one before
//	uvarint  the number of sorted files; then for each the number, as above, the epoch and the size
//	uvarint  the id of the directory, on some machine's disk, that has the logs; 0: they are in the object store
//	uvarint  the epoch of whoever wrote the list
//	bytes    what that one calls the directory: for people
//	uvarint  the number of logs in the directory that have records; then the number of each, as above
//
// where bytes are preceded by their length. It is in an entry of a sequence, which has a checksum.
type fileList struct {
	current  string // the text of CURRENT
	manifest []byte
	logStart uint64
	logs     []uint64 // in ascending order
	tables   map[uint64]table
	home     logHome
}

const listVersion = 1

// A table is a sorted file: the object's name has its number and the epoch of whoever wrote it.
type table struct {
	epoch uint64
	size  int64
}

func tableObject(num, epoch uint64) string { return fmt.Sprintf("%06d-%d.sst", num, epoch) }

// parseTableObject is the inverse of tableObject.
func parseTableObject(name string) (num, epoch uint64, ok bool) {
	if _, err := fmt.Sscanf(name, "%d-%d.sst", &num, &epoch); err != nil {
		return 0, 0, false
	}
	return num, epoch, tableObject(num, epoch) == name
}

func (l *fileList) encode() []byte {
	dst := binary.AppendUvarint(nil, listVersion)
	for _, b := range [][]byte{[]byte(l.current), l.manifest} {
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	dst = binary.AppendUvarint(dst, l.logStart)
	dst = appendNumbers(dst, l.logs)
	dst = binary.AppendUvarint(dst, uint64(len(l.tables)))
	last := uint64(0)
	for _, num := range slices.Sorted(maps.Keys(l.tables)) {
		t := l.tables[num]
		dst = binary.AppendUvarint(dst, num-last)
		dst = binary.AppendUvarint(dst, t.epoch)
		dst = binary.AppendUvarint(dst, uint64(t.size))
		last = num
	}
	dst = binary.AppendUvarint(dst, l.home.id)
	dst = binary.AppendUvarint(dst, l.home.epoch)
	dst = append(binary.AppendUvarint(dst, uint64(len(l.home.place))), l.home.place...)
	return appendNumbers(dst, l.home.logs)
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
	d := listDecoder{b: b}
	if version := d.uvarint(); version != listVersion && !d.bad {
		return l, 0, fmt.Errorf("%w: a list of files has version %d", manifest.ErrNewerFormat, version)
	}
	l.current, l.manifest = string(d.bytes()), slices.Clone(d.bytes())
	l.logStart = d.uvarint()
	l.logs = d.numbers()
	l.tables = map[uint64]table{}
	for last, n := uint64(0), d.count(3); n > 0 && !d.bad; n-- {
		last = d.after(last)
		t := table{epoch: d.uvarint()}
		size := d.uvarint()
		d.bad = d.bad || size > math.MaxInt64
		t.size = int64(size)
		l.tables[last] = t
	}
	l.home = logHome{id: d.uvarint(), epoch: d.uvarint()}
	l.home.place = string(d.bytes())
	l.home.logs = d.numbers()
	if d.bad || len(d.b) > 0 {
		return fileList{}, 0, errList
	}
	num, err = manifest.ParseCurrent(l.current)
	return l, num, err
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

// count returns a number of things that have at least so many bytes each.
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
