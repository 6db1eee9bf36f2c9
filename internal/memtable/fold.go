package memtable

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
)

// A counter that is merged a hundred thousand times has as many operands in the memtable, and a reader would have to
// combine all of them. So some operands get a fold: an entry with the operand's sequence number that has the merged
// result of it and versions before it. A reader that reaches a fold uses it and continues below the versions in it.
//
// A fold says nothing that the versions in it do not say, and hides none of them: readers of older snapshots, flushes,
// and other code without use for folds skip it. So folds need no regard for snapshots. Only a range tombstone that
// covers some of its versions, and not all, makes one useless.

// KindFold is the kind of an entry that is a fold. It exists in memtables alone, and comes before
// the operand of the same sequence number.
const KindFold = base.KindMax - 1

// A Fold is the merged result of consecutive versions of a key.
type Fold struct {
	Oldest base.SeqNum // the oldest version in it; the newest has the fold's sequence number
	Whole  bool        // no version before the oldest has a part in the value
	Value  []byte      // a value if Whole, an operand otherwise
}

// FoldIn returns the fold in the value of an entry of KindFold, which it aliases.
func FoldIn(value []byte) Fold {
	t := base.Trailer(binary.LittleEndian.Uint64(value))
	return Fold{Oldest: t.SeqNum(), Whole: t.Kind() != base.KindMerge, Value: value[foldHeader:]}
}

// Holds reports whether a reader may use the fold. cover is the newest range tombstone over the key
// that the reader sees, older than the fold; 0 if there is none.
func (f Fold) Holds(cover base.SeqNum) bool { return cover < f.Oldest }

func (f Fold) append(dst []byte) []byte {
	kind := base.KindMerge
	if f.Whole {
		kind = base.KindSet
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(base.MakeTrailer(f.Oldest, kind)))
	return append(dst, f.Value...)
}

const (
	foldHeader = 8

	// foldBits is how many bits of an operand's draw, the upper ones, are zero if it gets a fold:
	// one operand in 8, and no caller can choose which.
	foldBits = 3
	// minFold is the fewest entries, and maxFold the most, that go into a fold. The latter
	// bounds what an operand costs that cannot be combined.
	minFold, maxFold = 4, 256
	// maxFoldSize bounds the value of a fold.
	maxFoldSize = 64 << 10
	// growingShare is how much of what the memtable holds may be folds of values that grow with
	// each operand, such as lists: one part in growingShare. As much may be combined in vain.
	growingShare = 8
	// foldInputs bounds the bytes that are combined for a fold; fewInputs does after too much was
	// combined in vain. Then long lists cost their writers little, and counters still have folds.
	foldInputs, fewInputs = maxFoldSize / 2, 512
)

// A Combine combines values of one key, the oldest first. It returns memory of its own.
type Combine func(key []byte, values [][]byte) ([]byte, error)

// FoldOperands makes the folds that are due for the operands of a record which was applied.
// All entries with smaller sequence numbers must be in the table. It is for one goroutine
// at a time. What cannot be combined, or finds no room, has no fold: readers take longer.
func (m *Memtable) FoldOperands(record []byte, combine Combine) error {
	for e, err := range batchrepr.All(record) {
		if err != nil {
			return err
		}
		if e.Key.Kind() == base.KindMerge {
			m.foldIfDue(e.Key, combine)
		}
	}
	return nil
}

// FoldAll is FoldOperands for all operands of a table without concurrent Adds.
func (m *Memtable) FoldAll(combine Combine) {
	it := m.NewIter()
	for ok := it.Last(); ok; ok = it.Prev() { // the oldest version of a key comes first
		if k := it.Key(); k.Kind() == base.KindMerge {
			m.foldIfDue(k, combine)
		}
	}
}

func (m *Memtable) foldIfDue(k base.InternalKey, combine Combine) {
	hash := filterpolicy.Hash(k.User)
	if m.draw(k.Trailer, hash)>>(64-foldBits) != 0 {
		return
	}
	allowed, inputs := m.Size()/growingShare, foldInputs
	if m.inVain > allowed {
		inputs = fewInputs
	}
	g := m.gatherFold(k, hash, inputs)
	if len(g.values) < minFold {
		return
	}
	value, err := combine(k.User, g.oldestFirst())
	growing := len(value) > g.size/2
	if err != nil || len(value) > maxFoldSize || growing && m.growing+int64(len(value)) > allowed {
		m.inVain += int64(g.size)
		return
	}
	f := Fold{Oldest: g.oldest, Whole: g.whole, Value: value}.append(nil)
	room := EntrySize(len(k.User), len(f))
	if !m.reserve(room) {
		return
	}
	defer m.Release(room)
	m.folded.Store(true)
	if m.Add(base.MakeKey(k.User, k.SeqNum(), KindFold), hash, f) == nil && growing {
		m.growing += int64(len(value))
	}
}

// A foldInput is what goes into a fold.
type foldInput struct {
	values [][]byte // the newest first
	size   int      // of the values
	oldest base.SeqNum
	whole  bool
}

func (g *foldInput) add(value []byte, oldest base.SeqNum) {
	g.values = append(g.values, value)
	g.size += len(value)
	g.oldest = oldest
}

func (g *foldInput) oldestFirst() [][]byte {
	values := slices.Clone(g.values)
	slices.Reverse(values)
	return values
}

// gatherFold collects versions of a key, from k to older ones, until they have inputs bytes. It uses an older fold only
// if that is at most twice as long as what it has already. So the sizes of folds of growing values increase
// geometrically: a reader meets few, and all of them together take little.
func (m *Memtable) gatherFold(k base.InternalKey, hash uint64, inputs int) (g foldInput) {
	cover := m.Tombstones().Cover(k.User, k.SeqNum())
	n := m.newest(k.User, hash, k.SeqNum())
	for n != nilNode && len(g.values) < maxFold && g.size < inputs && bytes.Equal(m.user(n), k.User) {
		t := m.trailer(n)
		if t.SeqNum() < cover {
			g.whole = true
			return g
		}
		switch t.Kind() {
		case base.KindMerge:
			g.add(m.value(n), t.SeqNum())
		case KindFold:
			f := FoldIn(m.value(n))
			if !f.Holds(cover) {
				break
			}
			if len(f.Value) > 2*g.size {
				return g
			}
			g.add(f.Value, f.Oldest)
			if g.whole = f.Whole; g.whole || f.Oldest == 0 {
				return g
			}
			n = m.newest(k.User, hash, f.Oldest-1)
			continue
		case base.KindSet:
			g.add(m.value(n), t.SeqNum())
			g.whole = true
			return g
		case base.KindDelete:
			g.oldest, g.whole = t.SeqNum(), true
			return g
		default: // a value that expires outlives no fold
			return g
		}
		n = m.next(n)
	}
	return g
}
