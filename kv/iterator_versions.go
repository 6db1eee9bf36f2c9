package kv

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/memtable"
)

// forward goes on from the input's entry (on: there is one) to the newest visible
// version of a live key. If skip is set, that is not i.key.
func (i *cursor) forward(on, skip bool) bool {
	i.backward, i.ahead = false, onEntry
	for steps := 0; on; {
		k := i.input.Key()
		if skip && bytes.Equal(k.User, i.key) {
			on = i.passOlder(&steps)
			continue
		}
		if k.SeqNum() > i.at && !i.own.has(k.SeqNum()) {
			on = i.passNewer(k, &steps)
			continue
		}
		if i.upper != nil && bytes.Compare(k.User, i.upper) >= 0 {
			return false
		}
		// The newest visible version decides; what follows of the key is older.
		i.key = append(i.key[:0], k.User...)
		skip, steps = true, 0
		var end []byte
		var cover base.SeqNum
		if !i.plain {
			if _, end, cover = i.cover(k.User); i.err != nil {
				return false
			}
		}
		switch {
		case cover > k.SeqNum():
			on = i.input.SkipForward(end, cover)
		case k.Kind() == base.KindSet:
			i.show(i.input.Value())
			if i.plain {
				i.settle()
			}
			return true
		case k.Kind() == base.KindDelete:
			on = i.passDeletes()
		default:
			if i.resolve(k.Kind(), cover) {
				return i.valid
			}
			on = i.input.Next()
		}
	}
	i.err = i.input.Error()
	return false
}

// back goes back from the input's entry to the versions of a live key, of which the
// newest visible one comes last.
func (i *cursor) back(on bool) bool {
	i.backward, i.ahead, i.operands, i.apart, i.unread = true, onEntry, i.operands[:0], blob.Handle{}, nil
	have, live := false, false
	for steps := 0; on; {
		k := i.input.Key()
		if have && !bytes.Equal(k.User, i.key) {
			if live {
				return i.showOlder()
			}
			have, steps = false, 0
		}
		if i.lower != nil && bytes.Compare(k.User, i.lower) < 0 {
			break
		}
		if k.SeqNum() > i.at && !i.own.has(k.SeqNum()) {
			on = i.passNewerBack(k, &steps)
			continue
		}
		if steps++; have && steps > maxVersions {
			if i.newestFirst() {
				return i.valid
			}
			have, live, on = false, false, i.input.SeekLT(base.SearchKey(i.key, base.MaxSeqNum))
			continue
		}
		if k.Kind() == memtable.KindFold { // the versions in it came before it
			on = i.input.Prev()
			continue
		}
		if !have {
			i.key, steps, i.unread = append(i.key[:0], k.User...), 0, nil
		}
		start, _, cover := i.cover(k.User)
		if i.err != nil {
			return false
		}
		have, live = true, i.collectOlder(k, live, cover)
		if cover > k.SeqNum() {
			on = i.input.SkipBackward(start, cover)
		} else {
			on = i.input.Prev()
		}
	}
	if i.err = cmp.Or(i.input.Error(), i.err); i.err != nil {
		return false
	}
	return have && live && i.showOlder()
}

// cover returns the newest visible range tombstone over a key, and a span around
// the key that it covers; 0 if there is none, or an error in i.err.
func (i *cursor) cover(user []byte) (start, end []byte, seq base.SeqNum) {
	start, end, seq, err := i.parts.tombs.Cover(user)
	if err != nil {
		i.err = err
	}
	if i.own != nil {
		if s, e, q := i.own.cover(user); q > seq {
			return s, e, q
		}
	}
	return start, end, seq
}

// A key that is written again and again has many versions, of which a reader wants one.

// maxVersions is how many versions of a key an iterator passes one by one before it
// seeks past them: a seek costs as much as some ten steps.
const maxVersions = 8

// passOlder goes on from an older version of i.key. Steps counts such moves.
func (i *cursor) passOlder(steps *int) bool {
	if *steps++; *steps <= maxVersions {
		return i.input.Next()
	}
	*steps = 0
	return i.input.SkipTo(base.InternalKey{User: i.key}) // the last that a version can be
}

// passNewer goes on from k, which is too new to be seen. Steps counts such moves from
// versions of one key.
func (i *cursor) passNewer(k base.InternalKey, steps *int) bool {
	if !i.manyNewer(k, steps) {
		return i.input.Next()
	}
	return i.input.SkipTo(base.SearchKey(i.parts.newer, i.at))
}

// passNewerBack is passNewer going backward, where what is too new of a key comes last.
func (i *cursor) passNewerBack(k base.InternalKey, steps *int) bool {
	if !i.manyNewer(k, steps) {
		return i.input.Prev()
	}
	return i.input.SeekLT(base.SearchKey(i.parts.newer, base.MaxSeqNum))
}

// manyNewer counts k, and reports whether so many versions of its key were too new that a
// seek should pass the rest of them.
func (i *cursor) manyNewer(k base.InternalKey, steps *int) bool {
	p := i.parts
	if *steps == 0 || !bytes.Equal(k.User, p.newer) {
		p.newer = append(p.newer[:0], k.User...)
		*steps = 0
	}
	// A transaction's own writes have larger numbers, and some of them may be in view.
	if *steps++; *steps <= maxVersions || i.own != nil {
		return false
	}
	*steps = 0
	return true
}

// newestFirst decides i.key going forward, for an iterator that goes backward and has
// met many versions of the key: the newest one would be the last. It reports whether the
// move is over: with a value, or with an error.
func (i *cursor) newestFirst() (over bool) {
	p := i.parts
	p.past = append(append(p.past[:0], i.key...), 0)
	i.expiry = 0
	upper := i.upper
	i.upper = p.past // forward goes no further than the key
	p.on.off = true
	found := i.forward(i.input.SeekGE(base.SearchKey(i.key, base.MaxSeqNum)), false)
	i.upper, i.backward, i.ahead, i.operands, i.table = upper, true, onEntry, i.operands[:0], nil
	p.on.off, i.apart = false, blob.Handle{}
	if !found && !i.passable() {
		return i.err != nil
	}
	if found && !i.keysOnly { // else forward has said all there is to say
		i.keep(i.value)
	}
	i.input.SeekLT(base.SearchKey(i.key, base.MaxSeqNum))
	if err := i.input.Error(); err != nil {
		i.err, i.valid = err, false
	}
	return true
}

// What an iterator does at operands, and at values that expire. Going forward, the
// newest version of a key comes first, and the iterator moves on over the older ones
// until the chain of operands ends. Going backward it reaches the oldest first, and
// keeps what may be part of the chain until it has seen the newest.

// resolve goes on from the newest visible version of i.key, an operand or an expiring
// value that no tombstone covers. Cover is the sequence number of the newest range
// tombstone over the key. It reports whether the move is over: with a value, or with
// an error.
func (i *cursor) resolve(kind base.Kind, cover base.SeqNum) (over bool) {
	if kind == base.KindSetTTL {
		value, live, err := i.unexpired()
		if i.err = i.cannotShow(err); live {
			i.show(value)
		}
		return live || err != nil
	}
	if kind.Apart() {
		live, err := i.showApart(kind)
		i.err = i.cannotShow(err)
		return live || err != nil
	}
	if kind != base.KindMerge && kind != memtable.KindFold {
		i.err = i.cannotShow(unknownKind(i.key, kind))
		return true
	}
	if i.keysOnly {
		i.value, i.size, i.valid = nil, -1, true
		return true
	}
	return i.gather(cover)
}

// gather collects the chain of operands that the input is at, and what is under it, and shows what they make.
func (i *cursor) gather(cover base.SeqNum) (over bool) {
	i.operands, i.under, i.ahead = i.operands[:0], 0, pastEntry
	steps := 0
	for on := true; on; {
		k := i.input.Key()
		if k.SeqNum() < cover || !bytes.Equal(k.User, i.key) {
			break
		}
		if k.SeqNum() > i.at && !i.own.has(k.SeqNum()) { // between own operands and what is under them
			on = i.passUnseen(&steps)
			continue
		}
		if k.Kind() == memtable.KindFold {
			var whole bool
			if on, whole = i.takeFold(cover); whole {
				break
			}
			continue
		}
		value, live, err := i.part(k)
		if err != nil {
			i.err = i.cannotShow(err)
			return true
		}
		if live {
			i.operands = append(i.operands, bytes.Clone(value))
		}
		if live && k.Kind().Expires() {
			i.under, _, _ = base.CutExpiry(i.input.Value())
		}
		if k.Kind() != base.KindMerge {
			break
		}
		on = i.input.Next()
	}
	if i.err = i.input.Error(); i.err != nil {
		return true
	}
	slices.Reverse(i.operands)
	value, err := i.state.mergeOperands(i.key, i.operands)
	i.value, i.err, i.valid = value, i.cannotShow(err), err == nil
	return true
}

// passUnseen goes on from a version of i.key that is too new for a transaction, below its own
// ones. Steps counts such moves.
func (i *cursor) passUnseen(steps *int) bool {
	if *steps++; *steps <= maxVersions {
		return i.input.Next()
	}
	return i.input.SkipTo(base.SearchKey(i.key, i.at))
}

// takeFold takes the fold that the input is on as an operand, and goes on below the versions
// in it; on says whether anything follows. If nothing below has a part in the value, it
// reports whole instead. It passes a fold of which the tombstone cover hides some versions,
// and not all.
func (i *cursor) takeFold(cover base.SeqNum) (on, whole bool) {
	f := memtable.FoldIn(i.input.Value())
	if !f.Holds(cover) {
		return i.input.Next(), false
	}
	i.operands = append(i.operands, bytes.Clone(f.Value))
	if f.Whole || f.Oldest == 0 {
		return true, f.Whole
	}
	return i.input.SkipTo(base.SearchKey(i.key, f.Oldest-1)), false
}

// part returns what the input's entry brings into a value, and whether it brings
// anything.
func (i *cursor) part(k base.InternalKey) (value []byte, live bool, err error) {
	switch k.Kind() {
	case base.KindSet, base.KindMerge:
		return i.input.Value(), true, nil
	case base.KindSetTTL:
		return base.Unexpired(i.input.Value(), i.db.now())
	case base.KindSetApart, base.KindSetTTLApart:
		return i.partApart(k)
	case base.KindDelete:
		return nil, false, nil
	}
	return nil, false, unknownKind(k.User, k.Kind())
}

// collectOlder takes the input's entry, a version of i.key, going backward; live says that
// there is a value as of the version before it. It reports whether there is one as of
// this one.
func (i *cursor) collectOlder(k base.InternalKey, live bool, cover base.SeqNum) bool {
	expiry := i.expiry
	i.expiry = 0
	if k.Kind() == base.KindMerge && cover <= k.SeqNum() {
		if i.keysOnly {
			i.value, i.size = nil, -1
			return true
		}
		if len(i.operands) == 0 && live {
			i.under = expiry
			i.fetchOlder()
			i.operands = append(i.operands, bytes.Clone(i.value))
		}
		i.operands = append(i.operands, bytes.Clone(i.input.Value()))
		return true
	}
	i.operands, i.under, i.apart, i.unread = i.operands[:0], 0, blob.Handle{}, nil
	if cover > k.SeqNum() {
		return false
	}
	if k.Kind().Apart() {
		return i.keepApart(k)
	}
	value, live, err := i.part(k)
	i.unread = err
	i.keep(value)
	if live && k.Kind() == base.KindSetTTL {
		i.expiry, _, _ = base.CutExpiry(i.input.Value())
	}
	return live || err != nil
}

// showOlder makes the value of i.key of what collectOlder collected.
func (i *cursor) showOlder() bool {
	if len(i.operands) == 0 {
		return i.showOlderApart()
	}
	err := i.unread
	if err == nil {
		i.value, err = i.state.mergeOperands(i.key, i.operands)
	}
	i.operands = i.operands[:0]
	i.err, i.valid = i.cannotShow(err), err == nil
	return i.valid
}
