package remote

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/internal/sequence"
)

// A listEdit is what has changed between one list of files and the next. Its encoding is
//
//	uvarint  the number of slots that lead to the list before; then each slot, as the difference to the one before:
//	         that of a whole list, and those of the edits between that list and this edit
//	uvarint  the length of the manifest before
//	uvarint  the number of files that went; then the number of each, as the difference to the one before
//	list     a list of files: CURRENT is empty, the manifest has the bytes that were appended, and the files are those
//	         that came; everything else is as it is now
//
// A file that is another one under the same number went and came. An edit is in an entry of a sequence, which has a
// checksum.
type listEdit struct {
	chain  []uint64 // in ascending order, at least one
	length uint64   // of the manifest before
	gone   []uint64 // in ascending order
	list   fileList
}

// newListEdit returns the change from one list to the next, without a chain. ok is false if there is no such
// edit: CURRENT is another, or the manifest does not go on where that before ended.
func newListEdit(from, to *fileList) (e listEdit, ok bool) {
	if from == nil || from.current != to.current || !bytes.HasPrefix(to.manifest, from.manifest) {
		return e, false
	}
	e = listEdit{length: uint64(len(from.manifest)), list: *to}
	e.list.current, e.list.manifest, e.list.files = "", to.manifest[e.length:], map[uint64]file{}
	for num, t := range from.files {
		if now, there := to.files[num]; !there || now != t {
			e.gone = append(e.gone, num)
		}
	}
	for num, t := range to.files {
		if before, there := from.files[num]; !there || before != t {
			e.list.files[num] = t
		}
	}
	slices.Sort(e.gone)
	return e, true
}

func (e *listEdit) encode() []byte {
	dst := appendNumbers(nil, e.chain)
	dst = binary.AppendUvarint(dst, e.length)
	dst = appendNumbers(dst, e.gone)
	return append(dst, e.list.encode()...)
}

// decodeListEdit decodes an edit, which shares no memory with b.
func decodeListEdit(b []byte) (e listEdit, err error) {
	d := listDecoder{b: b}
	e.chain, e.length, e.gone = d.numbers(), d.uvarint(), d.numbers()
	if d.bad || len(e.chain) == 0 {
		return listEdit{}, errList
	}
	e.list, err = decodeFiles(d.b)
	if err == nil && e.list.current != "" {
		err = fmt.Errorf("%w: an edit has its own CURRENT", errList)
	}
	return e, err
}

// apply makes the change to the list before. That list is the caller's own: its map is changed, and bytes may be
// appended behind its manifest.
func (e *listEdit) apply(l *fileList) error {
	if uint64(len(l.manifest)) != e.length {
		return fmt.Errorf("%w: the manifest goes on at byte %d, and has %d", errList, e.length, len(l.manifest))
	}
	for _, num := range e.gone {
		if _, there := l.files[num]; !there {
			return fmt.Errorf("%w: file %d went and was not there", errList, num)
		}
		delete(l.files, num)
	}
	for num := range e.list.files {
		if _, there := l.files[num]; there {
			return fmt.Errorf("%w: file %d came and was there", errList, num)
		}
	}
	maps.Copy(l.files, e.list.files)
	now := e.list
	now.current, now.manifest, now.files = l.current, append(l.manifest, now.manifest...), l.files
	*l = now
	return nil
}

// decodeEdit decodes the edit of an entry.
func decodeEdit(s *sequence.Sequence, b slotBody) (e listEdit, err error) {
	e, err = decodeListEdit(b.edit)
	if err == nil && (e.chain[len(e.chain)-1] >= b.slot || e.list.logStart > b.slot) {
		err = fmt.Errorf("%w: it needs slots that come later", errList)
	}
	if err != nil {
		return e, asListError(s.Key(b.slot), err)
	}
	return e, nil
}
