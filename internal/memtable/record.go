package memtable

import (
	"bytes"
	"cmp"
	"errors"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
)

// A large record is not copied into a memtable: it gets one of its own, and the values stay in the record (Fill). Its
// nodes are written one after the other in the order of their keys, so that it takes neither searches nor an index:
// lookups search the list, which is balanced.
//
// Sorting is the most of the work, and needs no sequence numbers: Sort comes before.

// An Order is the points of a record in the order of their keys, the newest version first.
type Order struct {
	points     []point
	arena      int  // bytes of a memtable for them
	record     int  // bytes of the record
	tombstones bool // the record has range tombstones too
}

// A point is where an entry of a record is.
type point struct {
	word   uint64 // bytes of its key that points are sorted by
	at     uint32 // in the record
	number uint32 // among the entries
}

func (o *Order) layout() layout { return layout{1, roundUp(max(o.arena, firstNode)), o.record} }

// errTooLarge is the error for a record that a memtable has no offsets for.
var errTooLarge = errors.New("siftkv: the record is too large for a memtable of its own")

// Sort returns the order of a record. It changes nothing of it.
func Sort(record []byte) (*Order, error) {
	r, err := batchrepr.NewReader(record)
	if err != nil {
		return nil, err
	}
	o := &Order{points: make([]point, 0, r.Len()), arena: firstNode, record: len(record)}
	folds, sorted := 0, true
	var first, last base.InternalKey
	common := 0 // bytes that all keys begin with
	for number := uint32(0); ; number++ {
		at := len(record) - r.Rest()
		e, ok, err := r.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if e.Key.Kind() == base.KindRangeDelete {
			o.tombstones = true
			continue
		}
		if len(o.points) == 0 {
			first, common = e.Key, len(e.Key.User)
		} else {
			common = base.CommonPrefix(first.User[:common], e.Key.User)
			sorted = sorted && base.Compare(last, e.Key) < 0
		}
		last = e.Key
		o.arena += sizeBefore(balancedHeight(len(o.points))) + sizeFrom(len(e.Key.User))
		if e.Key.Kind() == base.KindMerge {
			folds += EntrySize(len(e.Key.User), 2*foldHeader)
		}
		o.points = append(o.points, point{at: uint32(at), number: number})
	}
	if folds > 0 {
		o.arena += folds>>foldBits + len(record)/growingShare
	}
	if o.arena > maxCapacity-len(record) {
		return nil, errTooLarge
	}
	if !sorted {
		s := sorter{record, make([]point, len(o.points))}
		s.sort(o.points, common)
	}
	return o, nil
}

// balancedHeight returns the height of the tower of node i of a list that is made in order.
func balancedHeight(i int) int { return min(1+bits.TrailingZeros(uint(i)+1)/2, maxHeight) }

// NewForRecord returns an empty memtable for Fill with a record of an order. It takes nothing else (see Seal).
func NewForRecord(o *Order) *Memtable { return o.layout().inHeap() }

// Fill adds the entries of a record of an order to an empty memtable that was made for it. The memtable keeps the
// record, whose entries must not change any more. Only FoldOperands may add to the memtable afterwards.
func (m *Memtable) Fill(record []byte, o *Order) error {
	r, err := batchrepr.NewReader(record)
	if err != nil {
		return err
	}
	seq := r.Seq()
	m.record = record
	var first, last [maxHeight]node
	before := head
	for i := range o.points {
		e, end, err := o.entry(record, seq, i)
		if err != nil {
			return err
		}
		height := balancedHeight(i)
		start, _, ok := m.allocate(uint64(sizeBefore(height))+sizeFrom(uint64(len(e.Key.User))), 0)
		if !ok {
			return ErrFull
		}
		n := node(start) + node(sizeBefore(height))
		m.fillNode(n, e.Key, uint64(end-len(e.Value)), len(e.Value)) // the value ends the entry
		m.write(n, prevField, before)
		for level := range height {
			if last[level] == nilNode {
				first[level] = n
			} else {
				m.write(last[level], linkAt(level), n)
			}
			last[level] = n
		}
		before = n
	}
	m.publish(&first, &last)
	m.count.Add(int64(len(o.points)))
	if o.tombstones {
		return m.apply(r, false, nil)
	}
	return nil
}

// applyInOrder is Apply of a record whose order is known.
func (m *Memtable) applyInOrder(record []byte, o *Order) error {
	in := inserts{ascending: true}
	r, err := batchrepr.NewReader(record)
	for i := 0; i < len(o.points) && err == nil; i++ {
		var e batchrepr.Entry
		if e, _, err = o.entry(record, r.Seq(), i); err == nil {
			err = in.add(m, e.Key, filterpolicy.Hash(e.Key.User), e.Value)
		}
	}
	if err = cmp.Or(err, in.flush(m)); err == nil && o.tombstones {
		err = m.apply(r, false, nil)
	}
	return err
}

// entry returns entry i of the order, and where it ends in the record. The first entry has the number seq.
func (o *Order) entry(record []byte, seq base.SeqNum, i int) (e batchrepr.Entry, end int, err error) {
	if i%stage == 0 {
		touch(record, o.points[i:min(i+stage, len(o.points))])
	}
	r := batchrepr.ReaderAt(record, int(o.points[i].at), seq+base.SeqNum(o.points[i].number))
	e, _, err = r.Next()
	return e, len(record) - r.Rest(), err
}

// stage is for how many entries, which are anywhere in a record, the cache misses are waited for side by side.
const stage = 32

// touch reads a byte of each entry.
//
//go:noinline
func touch(record []byte, points []point) (sum byte) {
	for _, p := range points {
		sum += record[p.at]
	}
	return sum
}

// publish ends the list of each level, and links it to the head.
func (m *Memtable) publish(first, last *[maxHeight]node) {
	height := 1
	for level, n := range last {
		if n != nilNode {
			m.write(n, linkAt(level), nilNode)
			height = level + 1
		}
	}
	m.raise(height)
	for level := range height {
		word(m.arena, head, linkAt(level)).Store(uint32(first[level]))
	}
	m.fillIndex(first[0])
}

// fillIndex enters the first keys in the index, which has one line: the line shows whether it has all keys.
func (m *Memtable) fillIndex(n node) {
	for entered := 0; n != nilNode && entered < lineSlots; n = m.next(n) {
		if user := m.user(n); entered == 0 || !bytes.Equal(user, m.user(m.hint(n))) {
			m.enter(n, filterpolicy.Hash(user))
			entered++
		}
	}
}
