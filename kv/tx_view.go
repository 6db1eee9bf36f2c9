package kv

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/version"
)

// ownSeq is the sequence number of a transaction's first write while it is the
// transaction's alone; the others count up. It is above all that a store gives
// out, so that merging puts a transaction's own writes before any others.
const ownSeq base.SeqNum = 1 << 55

// A txView adds a transaction's own writes to an iterator, as they were when it was
// made. It also notes the keys that the iterator has passed over. Other iterators
// have none: nil.
type txView struct {
	tx    *Tx
	index *memTable         // nil: no own writes
	tombs *rangedel.History // of the index
	last  base.SeqNum       // the newest own write in view

	// run is what the iterator has passed over since its last seek: it looked for
	// all keys of [lo, hi).
	run   version.Span
	open  bool // nothing is above the run
	empty bool // there is no run, or its lower end is still to come
}

func newTxView(t *Tx) (*txView, error) {
	m, err := t.writes.memory()
	if err != nil {
		return nil, err
	}
	v := &txView{tx: t, index: m, empty: true}
	if m != nil {
		v.tombs, v.last = m.Tombstones(), ownSeq+base.SeqNum(t.writes.indexed.Count)-1
	}
	return v, nil
}

// has reports whether a write is an own one that is in view.
func (v *txView) has(seq base.SeqNum) bool { return v != nil && seq >= ownSeq && seq <= v.last }

// cover is Iterator.cover among the own range tombstones.
func (v *txView) cover(user []byte) (start, end []byte, seq base.SeqNum) {
	return v.tombs.Span(user, base.MaxSeqNum)
}

// usable returns an error if the iterator must not go on.
func (v *txView) usable() error {
	if v.tx.done {
		return ErrTxDone
	}
	return v.tx.reads.err
}

// from begins a run forward at key.
func (v *txView) from(key []byte) {
	if v == nil {
		return
	}
	v.note()
	v.run.Lo, v.run.Hi = append(v.run.Lo[:0], key...), append(v.run.Hi[:0], key...)
	v.open, v.empty = false, false
}

// before begins a run backward below key, or from the last key there is.
func (v *txView) before(key []byte, fromLast bool) {
	if v == nil {
		return
	}
	v.note()
	v.run.Hi = append(v.run.Hi[:0], key...)
	v.open = fromLast
}

// ahead returns ok, the result of a move forward. It lengthens the run up to the
// entry that the move found, or else to the upper bound.
func (v *txView) ahead(i *cursor, ok bool) bool {
	if v != nil {
		v.lengthen(i, ok || i.passable())
	}
	return ok
}

func (v *txView) lengthen(i *cursor, ok bool) {
	switch {
	case v.open:
	case ok && bytes.Compare(i.key, v.run.Hi) >= 0:
		v.run.Hi = append(append(v.run.Hi[:0], i.key...), 0) // the first key after it
	case !ok && i.upper == nil:
		v.open = true
	case !ok && bytes.Compare(i.upper, v.run.Hi) > 0:
		v.run.Hi = append(v.run.Hi[:0], i.upper...)
	}
}

// behind is ahead for a move backward, and the lower bound.
func (v *txView) behind(i *cursor, ok bool) bool {
	if v != nil {
		v.lengthenDown(i, ok || i.passable())
	}
	return ok
}

func (v *txView) lengthenDown(i *cursor, ok bool) {
	to := i.lower // nil: the smallest key there is
	if ok {
		to = i.key
	}
	if v.empty || bytes.Compare(to, v.run.Lo) < 0 {
		v.run.Lo = append(v.run.Lo[:0], to...)
	}
	v.empty = false
}

// note adds the run to what the transaction has read, and ends it.
func (v *txView) note() {
	if v.empty || v.tx.done {
		return
	}
	v.empty = true
	if v.tx.writable {
		s := version.Span{Lo: v.run.Lo, Hi: v.run.Hi}
		if v.open {
			s.Hi = nil
		} else if s.Hi == nil {
			s.Hi = []byte{}
		}
		v.tx.reads.addSpan(s)
	}
}

// close ends the view with its iterator.
func (v *txView) close() {
	if v == nil || v.tx.done {
		return
	}
	v.note()
	v.tx.views = slices.DeleteFunc(v.tx.views, func(o *txView) bool { return o == v })
}
