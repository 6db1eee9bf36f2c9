package cursor

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/sstable"
)

// Most entries of a scan come from one table, one after the other. In a store of one run all do. In a tree of levels
// the last one has some ten between two of the levels above. A move within the table is a step in a block and a
// comparison with the fence. That is the smallest of the upper bound and the first keys of all other inputs. It needs
// no merge, copies no key, and calls no interface.

// enterTable takes key and value from the table that c.key comes from, if entries of it can be
// passed without the other inputs. The input has found the entry and is on it.
func (c *Cursor) enterTable() {
	c.fence = iterator.KeyPrefix(c.upper)
	if c.upper == nil {
		c.fence = noFence
	}
	t, next := c.input.Table()
	if t == nil {
		return
	}
	if next != nil {
		f := iterator.KeyPrefix(next)
		// The others may have older versions of the key: it is passed first.
		if f == iterator.KeyPrefix(c.key) && bytes.Compare(c.key, next) >= 0 {
			return
		}
		c.fence = min(c.fence, f)
	}
	c.table = t
}

// noFence is at or above the first bytes of every key.
const noFence = 1<<64 - 1

// nextInTable is Next in the table.
func (c *Cursor) nextInTable(t *sstable.Iter) bool {
	if !t.Step() { // at the end of a block, which leaves the key
		c.key = append(c.key[:0], t.User()...)
		return c.next()
	}
	k := t.Key()
	again := t.Again()
	if !again && (k.Kind() == base.KindSet || c.keysOnly && c.sizedInTable(t, k.Kind())) && k.SeqNum() <= c.view.At &&
		(iterator.KeyPrefix(k.User) < c.fence || c.within(k.User)) {
		c.returned++
		return true
	}
	if again {
		c.key = append(c.key[:0], k.User...)
	}
	c.valid, c.err, c.table = false, nil, nil
	// The others have nothing of the previous key: it was before the fence.
	return c.reached(c.forward(c.input.Moved(true), again))
}

// within reports whether a key is before the fence, of which it has the first bytes.
func (c *Cursor) within(user []byte) bool {
	_, next := c.input.Table()
	return (next == nil || bytes.Compare(user, next) < 0) && (c.upper == nil || bytes.Compare(user, c.upper) < 0)
}

// passDeletes goes on from the tombstone of c.key, past those that follow it in its table before
// the other inputs have anything. It does so without the merge, as nextInTable does. It leaves
// c.key at the last one if older versions of that may follow.
func (c *Cursor) passDeletes() bool {
	t, next := c.input.Table()
	if t == nil || !c.plain {
		return c.input.Next()
	}
	for t.Step() {
		k := t.Key()
		again := t.Again()
		if again {
			c.key = append(c.key[:0], k.User...)
		}
		if again || k.Kind() != base.KindDelete || k.SeqNum() > c.view.At ||
			next != nil && bytes.Compare(k.User, next) >= 0 || c.upper != nil && bytes.Compare(k.User, c.upper) >= 0 {
			return c.input.Moved(true)
		}
	}
	c.key = append(c.key[:0], t.User()...) // at the end of a block, which leaves the key
	return c.input.Next()
}
