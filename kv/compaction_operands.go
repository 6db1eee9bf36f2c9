package kv

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// Operands of one key in one stripe, with nothing between them, are a run. A run
// becomes one entry with the sequence number of its newest operand, which is all that
// a reader of the stripe sees of them:
//
//   - a value, if it ends at a value of its stripe, at a tombstone, or at the oldest
//     version there is, with nothing below;
//   - an operand otherwise, to be combined with what is older by a reader or by a
//     later compaction.
//
// A value that is going to expire stays an entry of its own under the run, since the
// run outlives it. If the merger fails, the run stays as it is.

// maxRunBytes bounds the operands that are held in memory. Longer runs are combined
// piece by piece: it does not matter in which order.
const maxRunBytes = 8 << 20

// An operandRun is the run that was read last: its entries while it is gathered, newest
// first, and then those that are still to be given out.
type operandRun struct {
	keys   []base.Trailer
	values [][]byte
	given  int
}

func (r *operandRun) busy() bool { return len(r.keys) > 0 }

func (r *operandRun) add(t base.Trailer, value []byte) {
	r.keys, r.values = append(r.keys, t), append(r.values, value)
}

func (r *operandRun) reset() { r.keys, r.values, r.given = r.keys[:0], r.values[:0], 0 }

// takeSpecial is take for operands and expiring values.
func (c *compactionIter) takeSpecial(stripe int) bool {
	switch c.key.Kind() {
	case base.KindMerge:
		c.open = true
		return true
	case base.KindSetTTL:
		if _, live, err := unexpired(c.value, c.now); err != nil || live {
			return c.place(stripe) // one that is damaged stays for readers to report
		}
		c.stats.expired++
		c.key.Trailer = base.MakeTrailer(c.key.SeqNum(), base.KindDelete)
		c.value = nil
	}
	return c.place(stripe)
}

// gather reads the run of operands that begins at the current entry, and moves to the
// first entry that it becomes. The input is then behind the run, or on an entry that
// the run hides.
func (c *compactionIter) gather() bool {
	r := &c.operands
	r.reset()
	r.add(c.key.Trailer, c.value)
	for size := len(c.value); c.in.Next(); {
		if c.shouldStop() {
			r.reset()
			return false
		}
		k := c.in.Key()
		if !bytes.Equal(k.User, c.user) {
			break
		}
		if c.stripe(k.SeqNum()) != c.lastStripe || len(r.keys) > 1 && size > maxRunBytes {
			return c.combine(false)
		}
		if c.tombstones.Cover(k.User, c.stripeEnd(c.lastStripe)) > k.SeqNum() {
			c.open = false
			return c.combine(true)
		}
		if k.Kind() != base.KindMerge {
			return c.combine(c.addBase(k))
		}
		r.add(k.Trailer, c.in.Value())
		size += len(c.in.Value())
	}
	if c.in.Error() != nil {
		r.reset()
		return false
	}
	return c.combine(c.bottom(c.user))
}

// addBase ends the run with the version under it, which is of the same stripe and no
// operand. It reports whether the run needs nothing older then.
func (c *compactionIter) addBase(k base.InternalKey) (whole bool) {
	value := c.in.Value()
	switch k.Kind() {
	case base.KindSet:
		c.operands.add(k.Trailer, value)
	case base.KindDelete:
		c.operands.add(k.Trailer, nil)
	case base.KindSetTTL:
		if _, live, err := unexpired(value, c.now); err != nil || live {
			return false // an entry of its own: take comes to it next
		}
		c.stats.expired++
		c.operands.add(base.MakeTrailer(k.SeqNum(), base.KindDelete), nil)
	default:
		return false
	}
	c.open = false
	return true
}

// combine makes one entry of the run if it can, and moves to the run's first entry.
// Whole says that nothing older has a part in it.
func (c *compactionIter) combine(whole bool) bool {
	r := &c.operands
	values := slices.Clone(r.values)
	if last := len(r.keys) - 1; r.keys[last].Kind() == base.KindDelete {
		values = values[:last]
		if c.lastStripe == 0 && c.bottom(c.user) { // as without a run: it hides nothing
			r.keys, r.values = r.keys[:last], r.values[:last]
		}
	}
	if c.fold == nil || len(values) == 1 && !whole {
		return c.nextOperand()
	}
	slices.Reverse(values)
	value, err := c.fold(c.user, values)
	if err != nil {
		c.stats.refused++
		c.refusal = err
		return c.nextOperand()
	}
	c.stats.folded += uint64(len(values) - 1)
	c.key = base.MakeKey(c.user, r.keys[0].SeqNum(), base.KindMerge)
	if whole {
		c.key.Trailer = base.MakeTrailer(r.keys[0].SeqNum(), base.KindSet)
		c.place(c.lastStripe)
	}
	r.reset()
	r.add(c.key.Trailer, value)
	return c.nextOperand()
}

// nextOperand moves to the next entry of the run, or to what stays of the input
// behind it.
func (c *compactionIter) nextOperand() bool {
	r := &c.operands
	if r.given < len(r.keys) {
		c.key, c.value = base.InternalKey{User: c.user, Trailer: r.keys[r.given]}, r.values[r.given]
		r.given++
		return true
	}
	r.reset()
	return c.in.Valid() && c.settle()
}
