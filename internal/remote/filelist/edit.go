package filelist

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/internal/sequence"
)

// An edit is what has changed between one list of files and the next. Its encoding is
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
type edit struct {
	chain  []uint64 // in ascending order, at least one
	length uint64   // of the manifest before
	gone   []uint64 // in ascending order
	list   List
}

// newEdit returns the change from one list to the next, without a chain. ok is false if there is no such
// edit: CURRENT is another, or the manifest does not go on where that before ended.
func newEdit(from, to *List) (e edit, ok bool) {
	if from == nil || from.Current != to.Current || !bytes.HasPrefix(to.Manifest, from.Manifest) {
		return e, false
	}
	e = edit{length: uint64(len(from.Manifest)), list: *to}
	e.list.Current, e.list.Manifest, e.list.Files = "", to.Manifest[e.length:], map[uint64]File{}
	for num, t := range from.Files {
		if now, there := to.Files[num]; !there || now != t {
			e.gone = append(e.gone, num)
		}
	}
	for num, t := range to.Files {
		if before, there := from.Files[num]; !there || before != t {
			e.list.Files[num] = t
		}
	}
	slices.Sort(e.gone)
	return e, true
}

func (e *edit) encode() []byte {
	dst := appendNumbers(nil, e.chain)
	dst = binary.AppendUvarint(dst, e.length)
	dst = appendNumbers(dst, e.gone)
	return append(dst, e.list.Encode()...)
}

// decodeEdit decodes an edit, which shares no memory with b.
func decodeEdit(b []byte) (e edit, err error) {
	d := newDecoder(b)
	e.chain, e.length, e.gone = d.numbers(), d.Uvarint(), d.numbers()
	if d.Bad || len(e.chain) == 0 {
		return edit{}, ErrMalformed
	}
	e.list, err = decodeFiles(d.Rest)
	if err == nil && e.list.Current != "" {
		err = fmt.Errorf("%w: an edit has its own CURRENT", ErrMalformed)
	}
	return e, err
}

// apply makes the change to the list before. That list is the caller's own: its map is changed, and bytes may be
// appended behind its manifest.
func (e *edit) apply(l *List) error {
	if uint64(len(l.Manifest)) != e.length {
		return fmt.Errorf("%w: the manifest goes on at byte %d, and has %d", ErrMalformed, e.length, len(l.Manifest))
	}
	for _, num := range e.gone {
		if _, there := l.Files[num]; !there {
			return fmt.Errorf("%w: file %d went and was not there", ErrMalformed, num)
		}
		delete(l.Files, num)
	}
	for num := range e.list.Files {
		if _, there := l.Files[num]; there {
			return fmt.Errorf("%w: file %d came and was there", ErrMalformed, num)
		}
	}
	maps.Copy(l.Files, e.list.Files)
	now := e.list
	now.Current, now.Manifest, now.Files = l.Current, append(l.Manifest, now.Manifest...), l.Files
	*l = now
	return nil
}

func editOf(s *sequence.Sequence, b SlotBody) (e edit, err error) {
	e, err = decodeEdit(b.Edit)
	if err == nil && (e.chain[len(e.chain)-1] >= b.Slot || e.list.LogStart > b.Slot) {
		err = fmt.Errorf("%w: it needs slots that come later", ErrMalformed)
	}
	if err != nil {
		return e, Malformed(s.Key(b.Slot), err)
	}
	return e, nil
}
