package cursor

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/values"
)

// What a cursor does at operands, and at values that expire. Going forward, the newest version of a key comes first,
// and the cursor moves on over the older ones until the chain of operands ends. Going backward it reaches the oldest
// first, and keeps what may be part of the chain until it has seen the newest.

// resolve goes on from the newest visible version of c.key, which is no tombstone, and which no tombstone covers. Cover
// is the sequence number of the newest range tombstone over the key. It reports whether the move is over: with a value,
// or with an error.
func (c *Cursor) resolve(kind base.Kind, cover base.SeqNum) (over bool) {
	if kind == base.KindMerge || kind == memtable.KindFold {
		if c.keysOnly {
			c.value, c.size, c.valid = nil, -1, true
			return true
		}
		return c.gather(cover)
	}
	e, err := c.stored(kind)
	if e.live {
		if c.expiry = e.expiry; e.handle.File == 0 {
			c.show(e.value)
		} else {
			err = c.showHandle(e.handle, kind)
		}
	}
	c.err = base.WithKey(c.key, err)
	return e.live || err != nil
}

// A storedValue is what an entry has of the value of its key.
type storedValue struct {
	live   bool // else it is a tombstone, or has expired
	value  []byte
	handle blob.Handle // in place of the value, if its file is not 0
	expiry uint64      // 0: none
}

// stored returns what the input's entry, which is of the given kind, has.
func (c *Cursor) stored(kind base.Kind) (e storedValue, err error) {
	value := c.input.Value()
	switch kind {
	case base.KindSet, base.KindMerge:
		return storedValue{live: true, value: value}, nil
	case base.KindSetTTL:
		if e.value, e.live, err = base.Unexpired(value, c.env.Now()); e.live {
			e.expiry, _, _ = base.CutExpiry(value)
		}
		return e, err
	case base.KindSetSeparated, base.KindSetTTLSeparated:
		e.handle, e.expiry, err = values.HandleOf(c.input.Key().User, value, kind)
		if e.live = err == nil && (!kind.Expires() || c.env.Now() < e.expiry); !e.live {
			return storedValue{}, err
		}
		return e, nil
	case base.KindDelete:
		return e, nil
	}
	return e, base.UnknownKind(c.input.Key().User, kind)
}

// gather collects the chain of operands that the input is at, and what is under it, and shows what they make.
func (c *Cursor) gather(cover base.SeqNum) (over bool) {
	c.operands, c.baseExpiry, c.position = c.operands[:0], 0, pastEntry
	steps := 0
	for on := true; on; {
		k := c.input.Key()
		if k.SeqNum() < cover || !bytes.Equal(k.User, c.key) {
			break
		}
		if k.SeqNum() > c.view.At && !c.view.Own.has(k.SeqNum()) { // between own operands and what is under them
			on = c.passTo(&steps, base.SearchKey(c.key, c.view.At))
			continue
		}
		if k.Kind() == memtable.KindFold {
			var whole bool
			if on, whole = c.addFold(cover); whole {
				break
			}
			continue
		}
		e, err := c.stored(k.Kind())
		if err == nil && e.handle.File > 0 {
			e.value, err = c.fetch(c.key, e.handle)
		}
		if err != nil {
			c.err = base.WithKey(c.key, err)
			return true
		}
		if e.live {
			c.operands, c.baseExpiry = append(c.operands, bytes.Clone(e.value)), e.expiry
		}
		if k.Kind() != base.KindMerge {
			break
		}
		on = c.input.Next()
	}
	if c.err = c.input.Error(); c.err != nil {
		return true
	}
	slices.Reverse(c.operands)
	value, err := c.view.Operands.Value(c.key, c.operands)
	c.value, c.err, c.valid = value, base.WithKey(c.key, err), err == nil
	return true
}

// addFold adds the fold that the input is on as an operand, and goes on below the versions in it; on says whether
// anything follows. If nothing below has a part in the value, it reports whole instead. It passes a fold of which the
// tombstone cover hides some versions, and not all.
func (c *Cursor) addFold(cover base.SeqNum) (on, whole bool) {
	f := memtable.FoldIn(c.input.Value())
	if !f.Holds(cover) {
		return c.input.Next(), false
	}
	c.operands = append(c.operands, bytes.Clone(f.Value))
	if f.Whole || f.Oldest == 0 {
		return true, f.Whole
	}
	return c.input.SkipTo(base.SearchKey(c.key, f.Oldest-1)), false
}

// addOlder adds the input's entry, a version of c.key, going backward; live says that there is a value as of the
// version before it. It reports whether there is one as of this one.
func (c *Cursor) addOlder(k base.InternalKey, live bool, cover base.SeqNum) bool {
	expiry := c.expiry
	c.expiry = 0
	if k.Kind() == base.KindMerge && cover <= k.SeqNum() {
		if c.keysOnly {
			c.value, c.size = nil, -1
			return true
		}
		if len(c.operands) == 0 && live {
			c.baseExpiry = expiry
			c.fetchOlder()
			c.operands = append(c.operands, bytes.Clone(c.value))
		}
		c.operands = append(c.operands, bytes.Clone(c.input.Value()))
		return true
	}
	c.operands, c.baseExpiry, c.handle, c.olderErr = c.operands[:0], 0, blob.Handle{}, nil
	if cover > k.SeqNum() {
		return false
	}
	if k.Kind() == base.KindSet {
		c.keepValue(c.input.Value())
		return true
	}
	e, err := c.stored(k.Kind())
	c.olderErr, c.expiry, c.handle = err, e.expiry, e.handle
	if c.keepValue(e.value); e.handle.File > 0 {
		c.size = int(e.handle.Size)
	}
	return e.live || err != nil
}

// fetchOlder reads the value of which addOlder has only the handle, if any, for operands over it.
func (c *Cursor) fetchOlder() {
	if c.handle.File > 0 && c.olderErr == nil {
		c.value, c.olderErr = c.fetch(c.key, c.handle)
		c.handle = blob.Handle{}
	}
}

// showOlder makes the value of c.key of what addOlder collected.
func (c *Cursor) showOlder() bool {
	err := c.olderErr
	c.valid = err == nil
	switch {
	case !c.valid:
	case len(c.operands) > 0:
		c.value, err = c.view.Operands.Value(c.key, c.operands)
		c.valid = err == nil
	case c.handle.File > 0 && !c.keysOnly:
		h := c.handle
		c.handle = blob.Handle{}
		err = c.load(h)
	}
	c.operands = c.operands[:0]
	c.err = base.WithKey(c.key, err)
	return c.valid
}

// show makes value, which is the input's, that of the entry that the cursor is on.
func (c *Cursor) show(value []byte) {
	c.value, c.valid = value, true
	if c.keysOnly {
		c.size = len(value)
	}
}

// keepValue makes value that of c.key, for an input that moves on before it is shown.
func (c *Cursor) keepValue(value []byte) {
	if c.keysOnly {
		c.value, c.size = nil, len(value)
		return
	}
	c.older = append(c.older[:0], value...)
	c.value = c.older
}
