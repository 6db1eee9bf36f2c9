package cursor

import (
	"bytes"
	"cmp"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/memtable"
)

// forward goes on from the input's entry (on: there is one) to the newest visible
// version of a live key. If skip is set, that is not c.key.
func (c *Cursor) forward(on, skip bool) bool {
	c.backward, c.position = false, onEntry
	for steps := 0; on; {
		k := c.input.Key()
		if skip && bytes.Equal(k.User, c.key) {
			on = c.passTo(&steps, base.InternalKey{User: c.key}) // the last that a version can be
			continue
		}
		if k.SeqNum() > c.view.At && !c.view.Own.has(k.SeqNum()) {
			on = c.passNewer(k, &steps)
			continue
		}
		if c.upper != nil && bytes.Compare(k.User, c.upper) >= 0 {
			return false
		}
		// The newest visible version decides; what follows of the key is older.
		c.key = append(c.key[:0], k.User...)
		skip, steps = true, 0
		var end []byte
		var cover base.SeqNum
		if !c.plain {
			if _, end, cover = c.cover(k.User); c.err != nil {
				return false
			}
		}
		switch {
		case cover > k.SeqNum():
			on = c.input.SkipForward(end, cover)
		case k.Kind() == base.KindSet:
			c.show(c.input.Value())
			if c.plain {
				c.enterTable()
			}
			return true
		case k.Kind() == base.KindDelete:
			on = c.passDeletes()
		default:
			if c.resolve(k.Kind(), cover) {
				return c.valid
			}
			on = c.input.Next()
		}
	}
	c.err = c.input.Error()
	return false
}

// back goes back from the input's entry to the versions of a live key, of which the newest visible one comes last.
func (c *Cursor) back(on bool) bool {
	c.backward, c.position, c.operands, c.handle, c.olderErr = true, onEntry, c.operands[:0], blob.Handle{}, nil
	have, live := false, false
	for steps := 0; on; {
		k := c.input.Key()
		if have && !bytes.Equal(k.User, c.key) {
			if live {
				return c.showOlder()
			}
			have, steps = false, 0
		}
		if c.lower != nil && bytes.Compare(k.User, c.lower) < 0 {
			break
		}
		if k.SeqNum() > c.view.At && !c.view.Own.has(k.SeqNum()) {
			on = c.passNewer(k, &steps)
			continue
		}
		if steps++; have && steps > maxVersions {
			if c.newestFirst() {
				return c.valid
			}
			have, live, on = false, false, c.input.SeekLT(base.SearchKey(c.key, base.MaxSeqNum))
			continue
		}
		if k.Kind() == memtable.KindFold { // the versions in it came before it
			on = c.input.Prev()
			continue
		}
		if !have {
			c.key, steps, c.olderErr = append(c.key[:0], k.User...), 0, nil
		}
		start, _, cover := c.cover(k.User)
		if c.err != nil {
			return false
		}
		have, live = true, c.addOlder(k, live, cover)
		if cover > k.SeqNum() {
			on = c.input.SkipBackward(start, cover)
		} else {
			on = c.input.Prev()
		}
	}
	if c.err = cmp.Or(c.input.Error(), c.err); c.err != nil {
		return false
	}
	return have && live && c.showOlder()
}

// cover returns the newest visible range tombstone over a key, and a span around
// the key that it covers; 0 if there is none, or an error in c.err.
func (c *Cursor) cover(user []byte) (start, end []byte, seq base.SeqNum) {
	start, end, seq, err := c.parts.tombs.Cover(user)
	if err != nil {
		c.err = err
	}
	if c.view.Own != nil {
		if s, e, q := c.view.Own.tombs.Span(user, base.MaxSeqNum); q > seq {
			return s, e, q
		}
	}
	return start, end, seq
}

// A key that is written again and again has many versions, of which a reader wants one.

// maxVersions is how many versions of a key a cursor passes one by one before it
// seeks past them: a seek costs as much as some ten steps.
const maxVersions = 8

// passTo goes on to the next entry or, after many steps through versions of a key, to the one at or after k.
func (c *Cursor) passTo(steps *int, k base.InternalKey) bool {
	if *steps++; *steps <= maxVersions {
		return c.input.Next()
	}
	*steps = 0
	return c.input.SkipTo(k)
}

// passNewer goes on in the cursor's direction from k, which is too new to be seen. Going backward, such versions of a
// key come last. Steps counts such moves from versions of one key. A transaction's own writes have larger numbers, and
// some of them may be in view: its cursor passes them one by one.
func (c *Cursor) passNewer(k base.InternalKey, steps *int) bool {
	p := c.parts
	if *steps == 0 || !bytes.Equal(k.User, p.newer) {
		p.newer = append(p.newer[:0], k.User...)
		*steps = 0
	}
	*steps++
	many := *steps > maxVersions && c.view.Own == nil
	if many {
		*steps = 0
	}
	switch {
	case many && c.backward:
		return c.input.SeekLT(base.SearchKey(p.newer, base.MaxSeqNum))
	case many:
		return c.input.SkipTo(base.SearchKey(p.newer, c.view.At))
	case c.backward:
		return c.input.Prev()
	}
	return c.input.Next()
}

// newestFirst decides c.key going forward, for a cursor that goes backward and has met many versions of the key: the
// newest one would be the last. It reports whether the move is over: with a value, or with an error.
func (c *Cursor) newestFirst() (over bool) {
	p := c.parts
	p.past = append(append(p.past[:0], c.key...), 0)
	c.expiry = 0
	upper := c.upper
	c.upper, c.single = p.past, true // forward goes no further than the key
	found := c.forward(c.input.SeekGE(base.SearchKey(c.key, base.MaxSeqNum)), false)
	c.upper, c.backward, c.position, c.operands, c.table = upper, true, onEntry, c.operands[:0], nil
	c.single, c.handle = false, blob.Handle{}
	if !found && !base.IsValueError(c.err) {
		return c.err != nil
	}
	if found && !c.keysOnly { // else forward has said all there is to say
		c.keepValue(c.value)
	}
	c.input.SeekLT(base.SearchKey(c.key, base.MaxSeqNum))
	if err := c.input.Error(); err != nil {
		c.err, c.valid = err, false
	}
	return true
}
