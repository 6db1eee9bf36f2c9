// Package filelist is what the entries of a sequence carry of a store: lists of files and edits of lists, and bytes of
// logs. [Read] returns the newest state from a sequence, and a [Chain] decides which list is put as an edit.
package filelist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/locallog"
)

// A List is what a store's directory has, except the contents of stored files and logs. Its encoding is
//
//	uvarint  the format's version: 1, or 2 if there are blob files, or 3 if there are slots for changes
//	bytes    CURRENT
//	bytes    the manifest that CURRENT names
//	uvarint  the slot of the first entry that logs need
//	uvarint  the number of logs; then the number of each, as the difference to the one before
//	uvarint  the number of writers; then for each the branch prefix (bytes), the epoch, and 8 bytes of nonce
//	uvarint  the number of sorted files; then for each the number, as above, which of them wrote it, and the size
//	uvarint  from version 2 on, the number of blob files; then for each the same
//	uvarint  in version 3, the number of copies of logs; then for each the same
//	uvarint  the id of the directory, on some machine's disk, that has the logs; 0: they are in the object store
//	uvarint  the epoch of the writer of the list
//	bytes    what that writer calls the directory: for people
//	uvarint  the number of logs in the directory that have records; then the number of each, as above
//	uvarint  the number of directories whose logs have ended; then for each the id, and the epoch of its last writer
//	uvarint  in version 3, the number of slots for changes; then for each, by name, its name and the text of its file
//
// where bytes are preceded by their length. It is in an entry of a sequence, which has a checksum.
//
// A release that knows version 1 only would lose blob files, so the version makes it refuse such a store. It cannot
// read such a checkpoint either, and then deletes nothing. One that does not know version 3 would lose slots.
type List struct {
	Current  string // the text of CURRENT
	Manifest []byte
	LogStart uint64
	Logs     []uint64        // in ascending order
	Files    map[uint64]File // by number
	Location locallog.Location

	SlotFiles map[string]string // the text of the file of each slot for changes, by its name; nil: there are none
}

// newestVersion is that of lists with files of all kinds: version n has the first n kinds.
const newestVersion = uint64(len(kinds))

// version returns the version that the list needs.
func (l *List) version() uint64 {
	if len(l.SlotFiles) > 0 {
		return newestVersion
	}
	version := uint64(1)
	for _, f := range l.Files {
		version = max(version, uint64(slices.Index(kinds[:], f.Kind))+1)
	}
	return version
}

// Encode returns the list in its format.
func (l *List) Encode() []byte {
	version := l.version()
	dst := binary.AppendUvarint(nil, version)
	for _, b := range [][]byte{[]byte(l.Current), l.Manifest} {
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	dst = binary.AppendUvarint(dst, l.LogStart)
	dst = appendNumbers(dst, l.Logs)
	dst = l.appendFiles(dst, version)
	dst = binary.AppendUvarint(dst, l.Location.ID)
	dst = binary.AppendUvarint(dst, l.Location.Epoch)
	dst = append(binary.AppendUvarint(dst, uint64(len(l.Location.Place))), l.Location.Place...)
	dst = appendNumbers(dst, l.Location.Logs)
	dst = binary.AppendUvarint(dst, uint64(len(l.Location.Ended)))
	for _, e := range l.Location.Ended {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, e.ID), e.Epoch)
	}
	if version < newestVersion {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(l.SlotFiles)))
	for _, name := range slices.Sorted(maps.Keys(l.SlotFiles)) {
		for _, text := range []string{name, l.SlotFiles[name]} {
			dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
		}
	}
	return dst
}

// appendFiles appends the writers, and the files of the kinds that a version has.
func (l *List) appendFiles(dst []byte, version uint64) []byte {
	index := map[WriterID]uint64{}
	var writers []WriterID
	of := map[manifest.FileKind][]uint64{}
	for _, num := range slices.Sorted(maps.Keys(l.Files)) {
		of[l.Files[num].Kind] = append(of[l.Files[num].Kind], num)
		o := l.Files[num].WriterID
		if _, there := index[o]; !there {
			index[o] = uint64(len(writers))
			writers = append(writers, o)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(writers)))
	for _, o := range writers {
		dst = append(binary.AppendUvarint(dst, uint64(len(o.Prefix))), o.Prefix...)
		dst = binary.AppendUvarint(dst, o.Epoch)
		dst = binary.LittleEndian.AppendUint64(dst, o.Nonce)
	}
	for _, kind := range kinds[:version] {
		dst = l.appendFilesOf(dst, of[kind], index)
	}
	return dst
}

// appendFilesOf appends the files with some numbers.
func (l *List) appendFilesOf(dst []byte, nums []uint64, writers map[WriterID]uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(nums)))
	last := uint64(0)
	for _, num := range nums {
		f := l.Files[num]
		dst = binary.AppendUvarint(dst, num-last)
		dst = binary.AppendUvarint(dst, writers[f.WriterID])
		dst = binary.AppendUvarint(dst, uint64(f.Size))
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

// ErrMalformed is matched by errors of Decode, except those about a newer format.
var ErrMalformed = errors.New("the list of files is malformed")

// Decode decodes a list, which shares no memory with b, and returns the number of the
// manifest in force.
func Decode(b []byte) (l List, num uint64, err error) {
	if l, err = decodeFiles(b); err == nil {
		num, err = manifest.ParseCurrent(l.Current)
	}
	return l, num, err
}

// decodeFiles decodes a list whose CURRENT may be anything.
func decodeFiles(b []byte) (l List, err error) {
	d := newDecoder(b)
	version := d.Uvarint()
	if (version == 0 || version > newestVersion) && !d.Bad {
		return l, fmt.Errorf("%w: a list of files has version %d", manifest.ErrNewerFormat, version)
	}
	l.Current, l.Manifest = string(d.Bytes()), slices.Clone(d.Bytes())
	l.LogStart = d.Uvarint()
	l.Logs = d.numbers()
	l.Files = d.files(kinds[:version])
	l.Location = locallog.Location{ID: d.Uvarint(), Epoch: d.Uvarint()}
	l.Location.Place = string(d.Bytes())
	l.Location.Logs = d.numbers()
	for n := d.count(2); n > 0 && !d.Bad; n-- {
		l.Location.Ended = append(l.Location.Ended, locallog.EndedLog{ID: d.Uvarint(), Epoch: d.Uvarint()})
	}
	if version == newestVersion {
		l.SlotFiles = d.slotFiles()
	}
	if d.Bad || len(d.Rest) > 0 || l.version() != version {
		return List{}, ErrMalformed
	}
	return l, nil
}

// slotFiles returns the files of slots; nil if there are none.
func (d *decoder) slotFiles() (slots map[string]string) {
	for last, n := "", d.count(3); n > 0 && !d.Bad; n-- {
		name, text := string(d.Bytes()), string(d.Bytes())
		if slots == nil {
			slots = map[string]string{}
		}
		d.Bad = d.Bad || name <= last || !manifest.IsSlotName(name)
		last, slots[name] = name, text
	}
	return slots
}

// files returns the files of some kinds.
func (d *decoder) files(kinds []manifest.FileKind) map[uint64]File {
	var writers []WriterID
	for n := d.count(10); n > 0 && !d.Bad; n-- {
		o := WriterID{Prefix: BranchPrefix(d.Bytes()), Epoch: d.Uvarint(), Nonce: d.u64()}
		d.Bad = d.Bad || !o.Prefix.Valid()
		writers = append(writers, o)
	}
	files := map[uint64]File{}
	for _, kind := range kinds {
		d.filesOf(writers, files, kind)
	}
	return files
}

// filesOf adds the files of a kind. A number that is there already is bad.
func (d *decoder) filesOf(writers []WriterID, files map[uint64]File, kind manifest.FileKind) {
	for last, n := uint64(0), d.count(3); n > 0 && !d.Bad; n-- {
		last = d.after(last)
		of, size := d.Uvarint(), d.Uvarint()
		_, twice := files[last]
		if of >= uint64(len(writers)) || size > math.MaxInt64 || twice {
			d.Fail()
			break
		}
		files[last] = File{WriterID: writers[of], Size: int64(size), Kind: kind}
	}
}

// A decoder takes values of file lists off a slice.
type decoder struct{ base.Decoder }

func newDecoder(b []byte) decoder { return decoder{base.Decoder{Rest: b}} }

func (d *decoder) u64() (v uint64) {
	if len(d.Rest) < 8 {
		d.Fail()
		return 0
	}
	v, d.Rest = binary.LittleEndian.Uint64(d.Rest), d.Rest[8:]
	return v
}

// count returns a number of items, each of which has "least" bytes or more.
func (d *decoder) count(least uint64) uint64 {
	n := d.Uvarint()
	if n > uint64(len(d.Rest))/least {
		d.Fail()
		return 0
	}
	return n
}

// numbers is the inverse of appendNumbers.
func (d *decoder) numbers() (nums []uint64) {
	for last, n := uint64(0), d.count(1); n > 0 && !d.Bad; n-- {
		last = d.after(last)
		nums = append(nums, last)
	}
	return nums
}

// after returns a number that is greater than last.
func (d *decoder) after(last uint64) uint64 {
	delta := d.Uvarint()
	if delta == 0 || last+delta < last {
		d.Fail()
		return 0
	}
	return last + delta
}
