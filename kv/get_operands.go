package kv

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A lookup whose newest version is a merge operand goes on to older ones, in the same
// memtable or table and in older ones. A value, a tombstone, an expired value, or the
// end of all versions ends the chain. Other lookups pay one comparison for this.

// An operandChain is what a lookup has found of a key with operands.
type operandChain struct {
	begun    bool
	operands [][]byte // newest first; a value under them is the last
	err      error
}

// answerInChain is answer for operands, values that expire, and all that comes under an operand.
func (l *lookup) answerInChain(value []byte, trailer base.Trailer) (done bool) {
	kind := trailer.Kind()
	switch {
	case trailer.SeqNum() < l.cover:
		kind = base.KindDelete
	case kind.Separated():
		done, err := l.answerHandle(value, trailer)
		if err != nil {
			l.chain.begun, l.chain.err = true, err
		}
		return done || err != nil
	case kind == base.KindSetTTL:
		raw, live := value, false
		if value, live, l.chain.err = base.Unexpired(raw, l.d.clock.now()); !live {
			kind = base.KindDelete
		} else if !l.chain.begun {
			l.expiry, _, _ = base.CutExpiry(raw)
		}
	}
	switch kind {
	case base.KindDelete, base.KindRangeDelete:
		l.chain.begun = l.chain.begun || l.chain.err != nil
		return true
	case base.KindSet, base.KindSetTTL:
		if l.chain.begun {
			l.chain.operands = append(l.chain.operands, value)
		} else {
			l.value, l.found = value, true
		}
		return true
	case base.KindMerge:
		if !l.chain.begun {
			l.chain = operandChain{begun: true, operands: make([][]byte, 0, 4)}
		}
		l.chain.operands = append(l.chain.operands, value)
		return !l.want // there is a value, whatever is below
	case memtable.KindFold:
		l.chain.begun = true
		f := memtable.FoldIn(value)
		if !f.Holds(l.cover) {
			return !l.want
		}
		l.chain.operands = append(l.chain.operands, f.Value)
		return f.Whole || !l.want
	}
	l.chain.begun, l.chain.err = true, base.UnknownKind(l.key, kind)
	return true
}

// combine returns the answer of a lookup that met operands; err is what ended it.
func (l *lookup) combine(s *readState, err error) (bool, error) {
	if err == nil {
		err = l.chain.err
	}
	if err != nil || !l.want {
		return err == nil, err
	}
	slices.Reverse(l.chain.operands)
	l.value, err = s.operands.Value(l.key, l.chain.operands)
	return err == nil, err
}

// olderInMemtable takes the versions below the one of trailer, which was an operand or a
// fold. It reports whether they answer the lookup.
func (l *lookup) olderInMemtable(m *memTable, value []byte, trailer base.Trailer) bool {
	var it memtable.Iter
	it.InitWithFolds(m)
	on := it.SeekVersion(l.key, l.hash, trailer.SeqNum())
	for on && it.Key().Trailer >= trailer { // an operand with a fold is the second of its number
		on = it.Next()
	}
	if trailer.Kind() == memtable.KindFold {
		on = l.passFold(&it, value, on)
	}
	for on {
		k := it.Key()
		if !bytes.Equal(k.User, l.key) {
			return false
		}
		value := it.Value()
		if l.answer(value, k.Trailer) {
			return true
		}
		on = it.Next()
		if k.Kind() == memtable.KindFold {
			on = l.passFold(&it, value, on)
		}
	}
	return false
}

// passFold goes on after a fold; on says whether anything follows it. If the lookup took the
// fold, it skips the versions in it.
func (l *lookup) passFold(it *memtable.Iter, value []byte, on bool) bool {
	f := memtable.FoldIn(value)
	if !f.Holds(l.cover) {
		return on
	}
	return f.Oldest > 0 && it.SeekVersion(l.key, l.hash, f.Oldest-1)
}

// olderInTable is olderInMemtable for a table. Compaction leaves few operands of a key in one.
func (l *lookup) olderInTable(r *sstable.Reader, trailer base.Trailer, p *sstable.Probe) (done bool, err error) {
	p.SkipValue = false // what is under an operand has a part in the value
	for trailer.SeqNum() > 0 {
		older, ok, done, err := l.find(r, trailer.SeqNum()-1, p)
		if err != nil || !ok {
			return false, err
		}
		if done {
			return true, nil
		}
		trailer = older
	}
	return false, nil
}
