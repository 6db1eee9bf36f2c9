package iterator

import (
	"bytes"
	"log/slog"
	"runtime"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A Compaction passes once over merged input and leaves out what no reader can see any more.
//
// Open snapshots cut history into stripes: stripe 0 is what every snapshot sees, the last one what only the present
// sees. Only the newest of a key's versions in one stripe can ever be read. A tombstone hides older versions of its own
// stripe; in stripe 0, and with nothing below, it hides nothing and goes itself. A value in stripe 0 with nothing below
// needs no sequence number any more: zero is shorter, and more entries look alike. A value that has expired is a
// tombstone. For merge operands see compaction_operands.go.
type Compaction struct {
	CompactionOptions
	in         *Merging
	tombstones *rangedel.Set // of the input: the newest of each stripe

	Key   base.InternalKey // of the entry that First or Next moved to; valid until the next move
	Value []byte
	Kept  *rangedel.Set // the tombstones that go on
	Stats CompactionStats

	user       []byte // the user key that is being gone through
	started    bool
	lastStripe int  // of the last version of user that was seen
	open       bool // it was an operand: older versions of its stripe matter

	passed  int   // bytes of input since the last pause
	stopped error // what Stop returned

	operands operandChain
}

// CompactionOptions say what a Compaction may drop.
type CompactionOptions struct {
	Snapshots []base.SeqNum // ascending
	// Keys are those of the pass; the tombstones must be cut to them. The zero value, like a nil Lo, begins with the
	// first key.
	Keys rangedel.Span
	// Bottom and BottomSpan report whether nothing older than the input can hold a key, or keys of [lo, hi). Nil: there
	// may always be something.
	Bottom     func(key []byte) bool
	BottomSpan func(lo, hi []byte) bool
	// Stop, if it is not nil, is called now and then: its error ends the pass.
	Stop func() error
	// MergeOperands combines values of one key, the oldest first. Nil: there is no merger.
	MergeOperands func(key []byte, values [][]byte) ([]byte, error)
	// ReadSeparated appends to dst the value that an entry has a handle of (blob.HandleOf): operands are combined with
	// it. If it fails, they stay as they are; ErrStaysSeparated is no failure.
	ReadSeparated func(dst []byte, k base.InternalKey, value []byte) ([]byte, error)
	Now           uint64 // of the clock, in microseconds since 1970
}

// CompactionStats are what a pass did besides dropping what is hidden.
type CompactionStats struct {
	OperandsMerged uint64 // operands that went into another entry
	MergeFailures  uint64 // chains of operands that could not be combined, or not with what is under them
	Expired        uint64 // values
	MergeError     error  // the last reason why operands could not be combined
}

// Add takes in what another pass did.
func (s *CompactionStats) Add(o *CompactionStats) {
	s.OperandsMerged += o.OperandsMerged
	s.MergeFailures += o.MergeFailures
	s.Expired += o.Expired
	if o.MergeError != nil {
		s.MergeError = o.MergeError
	}
}

// CountIn adds what a flush or compaction did to the counters of a store.
func (s *CompactionStats) CountIn(c *counters.Store, log *slog.Logger) {
	c.OperandsMerged.Add(s.OperandsMerged)
	c.MergeFailures.Add(s.MergeFailures)
	c.ExpiredDropped.Add(s.Expired)
	if err := s.MergeError; err != nil {
		log.Warn("operands could not be combined, and are kept as they are", "runs", s.MergeFailures, "error", err)
	}
}

// NewCompaction returns a pass over the entries of iters, with the range tombstones that come with them.
func NewCompaction(iters []Iter, tombstones []rangedel.Tombstone, o CompactionOptions) *Compaction {
	if o.Bottom == nil {
		o.Bottom = func([]byte) bool { return false }
		o.BottomSpan = func(_, _ []byte) bool { return false }
	}
	c := &Compaction{CompactionOptions: o, in: NewMerging(iters...)}
	c.tombstones = c.newestOfStripes(tombstones)
	c.Kept = c.keepTombstones()
	return c
}

// stripe returns the stripe of a sequence number.
func (c *Compaction) stripe(seq base.SeqNum) int {
	return sort.Search(len(c.Snapshots), func(i int) bool { return c.Snapshots[i] >= seq })
}

// stripeEnd returns the largest sequence number of a stripe.
func (c *Compaction) stripeEnd(stripe int) base.SeqNum {
	if stripe < len(c.Snapshots) {
		return c.Snapshots[stripe]
	}
	return base.MaxSeqNum
}

// First moves to the first entry that stays.
func (c *Compaction) First() bool {
	if c.Keys.Lo == nil {
		return c.in.First() && c.findKept()
	}
	return c.in.SeekGE(base.SearchKey(c.Keys.Lo, base.MaxSeqNum)) && c.findKept()
}

// Next moves to the next entry that stays.
func (c *Compaction) Next() bool {
	if c.operands.busy() {
		return c.nextOperand()
	}
	return c.in.Next() && c.findKept()
}

// findKept goes on from the current input entry to one that stays.
func (c *Compaction) findKept() bool {
	for ok := true; ok; ok = c.in.Next() {
		if c.shouldStop() || c.Keys.Hi != nil && bytes.Compare(c.in.Key().User, c.Keys.Hi) >= 0 {
			return false
		}
		if !c.keep(c.in.Key()) {
			continue
		}
		if c.Key.Kind() == base.KindMerge {
			return c.gather()
		}
		return true
	}
	return false
}

// pauseEvery is how many bytes of input pass between two pauses, where an entry counts for what its sequence number,
// its lengths and its comparisons cost as well.
const (
	pauseEvery  = 64 << 10
	entryWeight = 256
)

// shouldStop counts the input entry, and reports whether the pass has to end early. At a pause it gives way. Go takes a
// processor from a goroutine after ten milliseconds only: others would wait as long behind passes that have all.
func (c *Compaction) shouldStop() bool {
	if c.passed += entryWeight + len(c.in.Key().User) + len(c.in.Value()); c.passed < pauseEvery {
		return false
	}
	c.passed = 0
	runtime.Gosched()
	if c.Stop != nil {
		c.stopped = c.Stop()
	}
	return c.stopped != nil
}

// Err returns what ended the iteration early: a failure of the input, or what Stop returned.
func (c *Compaction) Err() error {
	if c.stopped != nil {
		return c.stopped
	}
	return c.in.Error()
}

// keep reports whether the input entry stays, and sets the key and the value that it gets.
func (c *Compaction) keep(k base.InternalKey) bool {
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
	c.Key, c.Value = base.InternalKey{User: c.user, Trailer: k.Trailer}, c.in.Value()
	if k.Kind() > base.KindRangeDelete {
		return c.keepSpecial(stripe)
	}
	return c.keepVisible(stripe)
}

// keepVisible reports whether an entry that nothing hides stays: a tombstone with nothing below does not. An entry that
// every reader sees gets sequence number zero.
func (c *Compaction) keepVisible(stripe int) bool {
	if stripe > 0 || !c.Bottom(c.user) {
		return true
	}
	if c.Key.Kind() == base.KindDelete {
		return false
	}
	if c.Kept.Cover(c.user, base.MaxSeqNum) == 0 {
		c.Key.Trailer = base.MakeTrailer(0, c.Key.Kind())
	}
	return true
}

// newestOfStripes returns of each stripe the newest tombstone over each key: no reader sees the older ones. Its cost
// grows with the stripes that have tombstones, and not with how many overlap.
func (c *Compaction) newestOfStripes(ts []rangedel.Tombstone) *rangedel.Set {
	if len(c.Snapshots) == 0 { // there is one stripe
		if set, err := rangedel.FromFragments(rangedel.Newest(ts)); err == nil {
			return set
		}
	}
	stripes := map[int][]rangedel.Tombstone{}
	for _, t := range ts {
		stripe := c.stripe(t.Seq)
		stripes[stripe] = append(stripes[stripe], t)
	}
	var newest []rangedel.Tombstone
	for _, of := range stripes {
		newest = append(newest, rangedel.Newest(of)...)
	}
	return rangedel.NewSet(newest)
}

// keepTombstones returns the tombstones that are still needed. Those of stripe 0 are not if nothing is below.
func (c *Compaction) keepTombstones() *rangedel.Set {
	return c.tombstones.Filter(func(t rangedel.Tombstone) bool {
		return c.stripe(t.Seq) > 0 || !c.BottomSpan(t.Start, t.End)
	})
}
