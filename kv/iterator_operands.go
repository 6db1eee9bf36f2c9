package kv

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// What an iterator does at operands, and at values that expire. Going forward, the
// newest version of a key comes first, and the iterator runs ahead over the older
// ones until the chain of operands ends. Going backward it comes to the oldest first,
// and keeps what may be part of the chain until it has seen the newest.

// resolve goes on from the newest visible version of i.key, an operand or an expiring
// value that no tombstone covers; cover is the sequence number of the newest range
// tombstone over the key. It reports whether the move is over: with a value, or with
// an error.
func (i *Iterator) resolve(kind base.Kind, cover base.SeqNum) (over bool) {
	if kind == base.KindSetTTL {
		value, live, err := base.Unexpired(i.merge.Value(), i.db.now())
		i.value, i.valid, i.err = value, live, err
		return live || err != nil
	}
	if kind != base.KindMerge {
		i.err = unknownKind(i.key, kind)
		return true
	}
	i.operands = append(i.operands[:0], bytes.Clone(i.merge.Value()))
	i.ahead = true
	for i.merge.Next() {
		k := i.merge.Key()
		if k.SeqNum() < cover || !bytes.Equal(k.User, i.key) {
			break
		}
		value, live, err := i.part(k)
		if err != nil {
			i.err = err
			return true
		}
		if live {
			i.operands = append(i.operands, bytes.Clone(value))
		}
		if k.Kind() != base.KindMerge {
			break
		}
	}
	if i.err = i.merge.Error(); i.err != nil {
		return true
	}
	slices.Reverse(i.operands)
	i.value, i.err = i.state.merging.fold(i.key, i.operands)
	i.valid = i.err == nil
	return true
}

// part returns what merge's entry brings into a value, and whether it brings
// anything.
func (i *Iterator) part(k base.InternalKey) (value []byte, live bool, err error) {
	switch k.Kind() {
	case base.KindSet, base.KindMerge:
		return i.merge.Value(), true, nil
	case base.KindSetTTL:
		return base.Unexpired(i.merge.Value(), i.db.now())
	case base.KindDelete:
		return nil, false, nil
	}
	return nil, false, unknownKind(k.User, k.Kind())
}

// takeOlder takes merge's entry, a version of i.key, going backward; live says that
// there is a value as of the version before it. It reports whether there is one as of
// this one. Merge moves on before the value is shown, so the value is copied.
func (i *Iterator) takeOlder(k base.InternalKey, live bool, cover base.SeqNum) bool {
	if k.Kind() == base.KindMerge && cover <= k.SeqNum() {
		if len(i.operands) == 0 && live {
			i.operands = append(i.operands, bytes.Clone(i.value))
		}
		i.operands = append(i.operands, bytes.Clone(i.merge.Value()))
		return true
	}
	i.operands = i.operands[:0]
	if cover > k.SeqNum() {
		return false
	}
	value, live, err := i.part(k)
	if err != nil {
		i.err = err
	}
	i.older = append(i.older[:0], value...)
	i.value = i.older
	return live
}

// settle makes the value of i.key of what takeOlder took.
func (i *Iterator) settle() bool {
	if len(i.operands) > 0 && i.err == nil {
		i.value, i.err = i.state.merging.fold(i.key, i.operands)
	}
	i.operands = i.operands[:0]
	i.valid = i.err == nil
	return i.valid
}
