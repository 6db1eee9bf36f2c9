package kv

import (
	"bytes"
	"slices"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A compactionIter goes once through merged input and leaves out what no reader
// can see any more.
//
// Open snapshots cut history into stripes: stripe 0 is what every snapshot sees,
// the last one what only the present sees. Of the versions of a key that fall
// into one stripe only the newest can ever be read. A tombstone hides older
// versions of its own stripe; in stripe 0, and with nothing below, it hides
// nothing and goes itself. A value in stripe 0 with nothing below needs no
// sequence number any more: zero is shorter, and more entries look alike. A value
// that has expired is a tombstone. Merge operands are told in compaction_operands.go.
type compactionIter struct {
	in         *mergingIter
	snapshots  []base.SeqNum // ascending
	tombstones *rangedel.Set // of the input
	kept       *rangedel.Set // of them, those that go on
	bottom     func(key []byte) bool
	// not nil: the iterator ends with its error, if it has one
	stop func() error
	fold func(key []byte, values [][]byte) ([]byte, error) // nil: no merger
	now  uint64                                            // of the clock, in microseconds since 1970

	key   base.InternalKey
	value []byte

	user       []byte // the user key that is being gone through
	started    bool
	lastStripe int  // of the last version of user that was seen
	open       bool // it was an operand: older versions of its stripe matter

	passed  int   // bytes of input since stop was last asked
	stopped error // what stop returned

	operands operandRun
	stats    compactionStats
	refusal  error // the last reason why operands could not be combined
}

// compactionStats are what a pass did besides dropping what is hidden.
type compactionStats struct {
	folded  uint64 // operands that went into another entry
	refused uint64 // runs of operands that could not be combined
	expired uint64 // values
}

// stripe returns the stripe of a sequence number.
func (c *compactionIter) stripe(seq base.SeqNum) int {
	return sort.Search(len(c.snapshots), func(i int) bool { return c.snapshots[i] >= seq })
}

// stripeEnd returns the largest sequence number of a stripe.
func (c *compactionIter) stripeEnd(stripe int) base.SeqNum {
	if stripe < len(c.snapshots) {
		return c.snapshots[stripe]
	}
	return base.MaxSeqNum
}

// first moves to the first entry that stays.
func (c *compactionIter) first() bool {
	return c.in.First() && c.settle()
}

// next moves to the next entry that stays.
func (c *compactionIter) next() bool {
	if c.operands.busy() {
		return c.nextOperand()
	}
	return c.in.Next() && c.settle()
}

// settle goes on from the current input entry to one that stays.
func (c *compactionIter) settle() bool {
	for ok := true; ok; ok = c.in.Next() {
		if c.shouldStop() {
			return false
		}
		if !c.take(c.in.Key()) {
			continue
		}
		if c.key.Kind() == base.KindMerge {
			return c.gather()
		}
		return true
	}
	return false
}

// stopInterval is how many bytes of input pass between two looks whether to stop, where an
// entry counts for what its sequence number, its lengths and its comparisons cost as well.
const (
	stopInterval = 256 << 10
	entryWeight  = 256
)

// shouldStop counts the input entry, and reports whether the pass has to end early.
func (c *compactionIter) shouldStop() bool {
	if c.passed += entryWeight + len(c.in.Key().User) + len(c.in.Value()); c.passed < stopInterval || c.stop == nil {
		return false
	}
	c.passed = 0
	c.stopped = c.stop()
	return c.stopped != nil
}

// err returns what ended the iteration early: a failure of the input, or
// what stop returned.
func (c *compactionIter) err() error {
	if c.stopped != nil {
		return c.stopped
	}
	return c.in.Error()
}

// take reports whether the input entry stays, and sets the key and the value that it
// gets.
func (c *compactionIter) take(k base.InternalKey) bool {
	stripe := c.stripe(k.SeqNum())
	if c.started && bytes.Equal(c.user, k.User) {
		if stripe == c.lastStripe && !c.open {
			return false // a newer version is in the same stripe
		}
	} else {
		c.user = append(c.user[:0], k.User...)
		c.started = true
	}
	c.lastStripe, c.open = stripe, false
	if c.tombstones.Cover(k.User, c.stripeEnd(stripe)) > k.SeqNum() {
		return false
	}
	c.key, c.value = base.InternalKey{User: c.user, Trailer: k.Trailer}, c.in.Value()
	if k.Kind() > base.KindRangeDelete {
		return c.takeSpecial(stripe)
	}
	return c.place(stripe)
}

// place reports whether an entry that nothing hides stays: a tombstone with nothing
// below does not. What everybody sees gets sequence number zero.
func (c *compactionIter) place(stripe int) bool {
	if stripe > 0 || !c.bottom(c.user) {
		return true
	}
	if c.key.Kind() == base.KindDelete {
		return false
	}
	if c.kept.Cover(c.user, base.MaxSeqNum) == 0 {
		c.key.Trailer = base.MakeTrailer(0, c.key.Kind())
	}
	return true
}

// keepTombstones returns those of the tombstones that somebody still needs: of
// each stripe the newest, and none of stripe 0 where nothing is below.
func (c *compactionIter) keepTombstones(bottomSpan func(lo, hi []byte) bool) *rangedel.Set {
	var kept []rangedel.Tombstone
	last := rangedel.Tombstone{}
	lastStripe := -1
	for _, t := range c.tombstones.Clip(nil, nil, nil) {
		stripe := c.stripe(t.Seq)
		same := lastStripe == stripe && bytes.Equal(last.Start, t.Start) && rangedel.CompareEnds(last.End, t.End) == 0
		last, lastStripe = t, stripe
		if same || stripe == 0 && bottomSpan(t.Start, t.End) {
			continue
		}
		kept = append(kept, t)
	}
	return rangedel.NewSet(slices.Clip(kept))
}
