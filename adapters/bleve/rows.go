package siftbleve

import (
	"encoding/binary"
	"errors"
	"fmt"

	store "github.com/blevesearch/upsidedown_store_api"

	"github.com/siftkv/siftkv/kv"
)

// What the store has under a key is one of these:
//
//	value                   a value, unless it begins with one of the two bytes
//	escape value            a value that does
//	operands (length op)+   operands of Merge, the oldest first, with no value under them; lengths are uvarints
//
// Rows of upsidedown hardly ever begin with them: nearly all values are stored as they are.
const (
	escape   = 0xFE
	operands = 0xFF
)

// rows say what the bytes under a key stand for, by a merge operator, which may be nil. They are a kv.Merger:
// it gets operands and values alike, and tells them apart by their first byte.
type rows struct{ operator store.MergeOperator }

var _ kv.Merger = rows{}

var (
	errOperator = errors.New("the merge operator returned failure")
	errOperands = errors.New("operands are cut off")
)

func appendValue(dst, value []byte) []byte {
	if len(value) > 0 && value[0] >= escape {
		dst = append(dst, escape)
	}
	return append(dst, value...)
}

// appendOperand appends an operand to the stored form of others, or begins one.
func appendOperand(dst, operand []byte) []byte {
	if len(dst) == 0 {
		dst = append(dst, operands)
	}
	return append(binary.AppendUvarint(dst, uint64(len(operand))), operand...)
}

func areOperands(stored []byte) bool { return len(stored) > 0 && stored[0] == operands }

// split returns operands of their stored form, which they alias.
func split(stored []byte) (ops [][]byte, err error) {
	for rest := stored[1:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return nil, errOperands
		}
		end := n + int(size)
		ops = append(ops, rest[n:end:end])
		rest = rest[end:]
	}
	return ops, nil
}

// plain returns the value of a stored form that is not operands. It aliases that.
func plain(stored []byte) []byte {
	if len(stored) > 0 && stored[0] == escape {
		return stored[1:]
	}
	return stored
}

// value returns the value of a stored form. It may alias that.
func (r rows) value(key, stored []byte) ([]byte, error) {
	if !areOperands(stored) {
		return plain(stored), nil
	}
	return r.fold(key, nil, stored)
}

// fold applies operands to a value; nil: there is none.
func (r rows) fold(key, value, stored []byte) ([]byte, error) {
	if r.operator == nil {
		return nil, fmt.Errorf("bleve: siftkv: key %q: %w", key, kv.ErrNoMerger)
	}
	ops, err := split(stored)
	if err != nil {
		return nil, fmt.Errorf("bleve: siftkv: key %q: %w", key, err)
	}
	folded, ok := r.operator.FullMerge(key, value, ops)
	if !ok {
		return nil, fmt.Errorf("bleve: siftkv: key %q: %w", key, errOperator)
	}
	if folded == nil {
		folded = []byte{} // there is a value, and it is empty
	}
	return folded, nil
}

// Name has the version of the stored form, and the operator's name.
func (r rows) Name() string { return "bleve.1." + r.operator.Name() }

// Merge puts operands behind what is there: a value, which takes them in, or older operands.
func (r rows) Merge(key, older, newer []byte) ([]byte, error) {
	if !areOperands(newer) {
		return nil, errOperands // Batch.Merge writes nothing else
	}
	if !areOperands(older) {
		value, err := r.fold(key, plain(older), newer)
		if err != nil {
			return nil, err
		}
		return appendValue(nil, value), nil // a copy: what the operator returns may be part of newer
	}
	a, oneOlder := only(older)
	b, oneNewer := only(newer)
	if oneOlder && oneNewer {
		// Of a longer list some could not be combined, and trying all again with each that comes would take
		// long: FullMerge has the rest.
		if both, ok := r.operator.PartialMerge(key, a, b); ok {
			return appendOperand(nil, both), nil
		}
	}
	return append(older, newer[1:]...), nil
}

// only returns the operand of a stored form that has one and no more.
func only(stored []byte) (operand []byte, ok bool) {
	size, n := binary.Uvarint(stored[1:])
	if n <= 0 || size != uint64(len(stored)-1-n) {
		return nil, false
	}
	return stored[1+n:], true
}
