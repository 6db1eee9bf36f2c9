package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
)

// A key that is written again and again has many versions, of which a reader wants one.

// maxVersions is how many versions of a key an iterator passes one by one before it
// seeks what is behind them: a seek costs as much as some ten steps.
const maxVersions = 8

// passOlder goes on from an older version of i.key. Steps counts such moves.
func (i *Iterator) passOlder(steps *int) bool {
	if *steps++; *steps <= maxVersions {
		return i.merge.Next()
	}
	*steps = 0
	return i.merge.SkipTo(base.InternalKey{User: i.key}) // the last that a version can be
}

// passNewer goes on from k, which is too new to be seen. Steps counts such moves from
// versions of one key.
func (i *Iterator) passNewer(k base.InternalKey, steps *int) bool {
	p := i.parts
	if *steps == 0 || !bytes.Equal(k.User, p.newer) {
		p.newer = append(p.newer[:0], k.User...)
		*steps = 0
	}
	// A transaction's own writes have larger numbers, and some of them may be in view.
	if *steps++; *steps <= maxVersions || i.own != nil {
		return i.merge.Next()
	}
	*steps = 0
	return i.merge.SkipTo(base.SearchKey(p.newer, i.at))
}

// passNewerBack is passNewer going backward, where what is too new of a key comes last.
func (i *Iterator) passNewerBack(k base.InternalKey, steps *int) bool {
	p := i.parts
	if *steps == 0 || !bytes.Equal(k.User, p.newer) {
		p.newer = append(p.newer[:0], k.User...)
		*steps = 0
	}
	if *steps++; *steps <= maxVersions || i.own != nil {
		return i.merge.Prev()
	}
	*steps = 0
	return i.merge.SeekLT(base.SearchKey(p.newer, base.MaxSeqNum))
}

// newestFirst decides i.key going forward, for an iterator that goes backward and has
// come to many versions of the key: the newest one would be the last. It reports whether
// the move is over: with a value, or with an error.
func (i *Iterator) newestFirst() (over bool) {
	p := i.parts
	p.past = append(append(p.past[:0], i.key...), 0)
	upper := i.upper
	i.upper = p.past // forward goes no further than the key
	found := i.forward(i.merge.SeekGE(base.SearchKey(i.key, base.MaxSeqNum)), false)
	i.upper, i.backward, i.ahead, i.operands = upper, true, false, i.operands[:0]
	if !found {
		return i.err != nil
	}
	i.older = append(i.older[:0], i.value...) // merge moves on before the value is shown
	i.value = i.older
	i.merge.SeekLT(base.SearchKey(i.key, base.MaxSeqNum))
	if i.err = i.merge.Error(); i.err != nil {
		i.valid = false
	}
	return true
}
