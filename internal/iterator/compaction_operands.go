package iterator

import (
	"bytes"
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// Operands of one key in one stripe, with nothing between them, are a chain. A chain becomes one entry with the
// sequence number of its newest operand, which is all that a reader of the stripe sees of them:
//
//   - a value, if it ends at a value of its stripe, at a tombstone, or at the oldest
//     version there is, with nothing below.
//   - an operand otherwise. A reader or a later compaction combines it with older
//     versions.
//
// A value that is going to expire stays an entry of its own under the chain, since the chain outlives it. If the merger
// fails, the chain stays as it is.

// maxChainBytes bounds the operands that are held in memory. Longer chains are combined piece by piece: it does not
// matter in which order.
const maxChainBytes = 8 << 20

// An operandChain is the chain that was read last: its entries while it is gathered, newest first, and then those that
// are still to be given out.
type operandChain struct {
	keys   []base.Trailer
	values [][]byte
	given  int
	buf    []byte // of the values: those of the input are gone when it moves
	handle []byte // unless nil, the handle of the last value, which was read to be combined
}

func (r *operandChain) busy() bool { return len(r.keys) > 0 }

// add copies the value: what was copied before stays where it is when buf grows.
func (r *operandChain) add(t base.Trailer, value []byte) {
	if value != nil {
		at := len(r.buf)
		r.buf = append(r.buf, value...)
		value = r.buf[at:len(r.buf):len(r.buf)]
	}
	r.keys, r.values = append(r.keys, t), append(r.values, value)
}

func (r *operandChain) reset() {
	clear(r.values)
	r.keys, r.values, r.given, r.buf, r.handle = r.keys[:0], r.values[:0], 0, r.buf[:0], nil
}

// leave has the chain given out as it came: a value that was read goes on as its handle.
func (r *operandChain) leave() {
	if r.handle == nil {
		return
	}
	last := len(r.keys) - 1
	r.keys[last], r.values[last] = base.MakeTrailer(r.keys[last].SeqNum(), base.KindSetSeparated), r.handle
}

// keepSpecial is keep for operands and expiring values.
func (c *Compaction) keepSpecial(stripe int) bool {
	switch c.Key.Kind() {
	case base.KindMerge:
		c.open = true
		return true
	case base.KindSetTTL, base.KindSetTTLSeparated: // an expiry stands before either
		if _, live, err := base.Unexpired(c.Value, c.Now); err != nil || live {
			return c.keepVisible(stripe) // one that is damaged stays for readers to report
		}
		c.Stats.Expired++
		c.Key.Trailer = base.MakeTrailer(c.Key.SeqNum(), base.KindDelete)
		c.Value = nil
	}
	return c.keepVisible(stripe)
}

// gather reads the chain of operands that begins at the current entry, and moves to the first entry that it becomes.
// The input is then past the chain, or on an entry that the chain hides.
func (c *Compaction) gather() bool {
	r := &c.operands
	r.reset()
	r.add(c.Key.Trailer, c.Value)
	for size := len(c.Value); c.in.Next(); {
		if c.shouldStop() {
			r.reset()
			return false
		}
		k := c.in.Key()
		if !bytes.Equal(k.User, c.user) {
			break
		}
		if c.stripe(k.SeqNum()) != c.lastStripe || len(r.keys) > 1 && size > maxChainBytes {
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
	return c.combine(c.Bottom(c.user))
}

// addBase ends the chain with the version under it, which is of the same stripe and no operand. It reports whether the
// chain needs nothing older then.
func (c *Compaction) addBase(k base.InternalKey) (whole bool) {
	value := c.in.Value()
	switch k.Kind() {
	case base.KindSet:
		c.operands.add(k.Trailer, value)
	case base.KindDelete:
		c.operands.add(k.Trailer, nil)
	case base.KindSetSeparated:
		if !c.addSeparated(k, value) {
			return false
		}
	case base.KindSetTTL, base.KindSetTTLSeparated:
		if _, live, err := base.Unexpired(value, c.Now); err != nil || live {
			return false // an entry of its own: keep handles it next
		}
		c.Stats.Expired++
		c.operands.add(base.MakeTrailer(k.SeqNum(), base.KindDelete), nil)
	default:
		return false
	}
	c.open = false
	return true
}

// ErrStaysSeparated is what CompactionOptions.ReadSeparated returns for a value that must not be combined.
var ErrStaysSeparated = errors.New("siftkv: the value stays in its blob file")

// addSeparated ends the chain with a value that is read for it. It reports false if that fails, or there is nothing to
// combine it with: then it stays an entry of its own, with its handle.
func (c *Compaction) addSeparated(k base.InternalKey, value []byte) bool {
	if c.MergeOperands == nil || c.ReadSeparated == nil {
		return false
	}
	handle := bytes.Clone(value)
	value, err := c.ReadSeparated(nil, k, value)
	if errors.Is(err, ErrStaysSeparated) {
		return false
	}
	if err != nil {
		c.Stats.MergeFailures++
		c.Stats.MergeError = err
		return false
	}
	c.operands.add(base.MakeTrailer(k.SeqNum(), base.KindSet), value)
	c.operands.handle = handle
	return true
}

// combine makes one entry of the chain if it can, and moves to the chain's first entry. Whole says that nothing older
// has a part in it.
func (c *Compaction) combine(whole bool) bool {
	r := &c.operands
	values := slices.Clone(r.values)
	if last := len(r.keys) - 1; r.keys[last].Kind() == base.KindDelete {
		values = values[:last]
		if c.lastStripe == 0 && c.Bottom(c.user) { // as without a chain: it hides nothing
			r.keys, r.values = r.keys[:last], r.values[:last]
		}
	}
	if c.MergeOperands == nil || len(values) == 1 && !whole {
		return c.nextOperand()
	}
	slices.Reverse(values)
	value, err := c.MergeOperands(c.user, values)
	if err != nil {
		c.Stats.MergeFailures++
		c.Stats.MergeError = err
		r.leave()
		return c.nextOperand()
	}
	c.Stats.OperandsMerged += uint64(len(values) - 1)
	c.Key = base.MakeKey(c.user, r.keys[0].SeqNum(), base.KindMerge)
	if whole {
		c.Key.Trailer = base.MakeTrailer(r.keys[0].SeqNum(), base.KindSet)
		c.keepVisible(c.lastStripe)
	}
	r.reset()
	r.add(c.Key.Trailer, value)
	return c.nextOperand()
}

// nextOperand moves to the next entry of the chain, or to what stays of the input after it.
func (c *Compaction) nextOperand() bool {
	r := &c.operands
	if r.given < len(r.keys) {
		c.Key, c.Value = base.InternalKey{User: c.user, Trailer: r.keys[r.given]}, r.values[r.given]
		r.given++
		return true
	}
	r.reset()
	return c.in.Valid() && c.findKept()
}
