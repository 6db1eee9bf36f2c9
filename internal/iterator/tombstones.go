package iterator

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// Tombstones are the range tombstones of all places that one iterator merges: memtables and sorted runs. They are not
// merged. Each place answers for a key with the span in which the answer holds, and is asked again for a key outside
// it. So an iterator in a gap, or under a tombstone, pays a comparison or two for each key, however many tombstones
// there are elsewhere.
//
// The zero value is empty. Release makes it so again, and keeps its memory.
type Tombstones struct {
	at     base.SeqNum
	cache  *tablecache.Cache
	places []tombstonePlace

	// Between lo and hi the newest tombstone is of sequence number seq, and reaches from start to end.
	known      bool
	lo, hi     []byte // nil: no bound
	start, end []byte
	seq        base.SeqNum
}

// A tombstonePlace is a memtable or a run, and the answer of it that was asked for last: between lo and hi, the newest
// visible tombstone is of sequence number seq.
type tombstonePlace struct {
	memory *rangedel.History
	run    *version.Run // of the tables with tombstones

	open *version.Table // the table that was asked last, of which the rest is
	set  *rangedel.Set
	near int // the place of the last answer in set

	known  bool
	lo, hi []byte
	seq    base.SeqNum
}

// Init makes t the tombstones that a reader at sequence number at sees in version v, between the bounds lo and hi. It
// opens no table. T is empty before.
func (t *Tombstones) Init(v *version.Version, c *tablecache.Cache, lo, hi []byte, at base.SeqNum) {
	t.at, t.cache, t.known = at, c, false
	if !v.HasTombstones() {
		return
	}
	for _, r := range v.Runs {
		if with := r.WithTombstones; with != nil && with.Overlaps(lo, hi) {
			t.places = append(t.places, tombstonePlace{run: with})
		}
	}
}

// AddMemory adds those of a memtable.
func (t *Tombstones) AddMemory(h *rangedel.History) {
	if !h.Empty() {
		t.places = append(t.places, tombstonePlace{memory: h})
	}
}

// Empty reports whether there is no tombstone between the bounds.
func (t *Tombstones) Empty() bool { return len(t.places) == 0 }

// Release makes t empty. It refers to nothing of the store any more.
func (t *Tombstones) Release() {
	clear(t.places)
	*t = Tombstones{places: t.places[:0]}
}

// Cover returns the newest visible tombstone over a key, and a span around the key that it covers; seq is 0 if there is
// none. It opens the tables with bounds that include the key.
func (t *Tombstones) Cover(key []byte) (start, end []byte, seq base.SeqNum, err error) {
	if t.known && holds(t.lo, t.hi, key) {
		return t.start, t.end, t.seq, nil
	}
	t.known, t.lo, t.hi, t.start, t.end, t.seq = false, nil, nil, nil, nil, 0
	for i := range t.places {
		p := &t.places[i]
		if !p.known || !holds(p.lo, p.hi, key) {
			if err := p.ask(t.cache, key, t.at); err != nil {
				return nil, nil, 0, err
			}
		}
		if bytes.Compare(p.lo, t.lo) > 0 {
			t.lo = p.lo
		}
		if rangedel.CompareEnds(p.hi, t.hi) < 0 {
			t.hi = p.hi
		}
		if p.seq > t.seq {
			t.start, t.end, t.seq = p.lo, p.hi, p.seq
		}
	}
	t.known = true
	return t.start, t.end, t.seq, nil
}

// holds reports whether key is in [lo, hi), where nil is no bound.
func holds(lo, hi, key []byte) bool {
	return bytes.Compare(lo, key) <= 0 && (hi == nil || bytes.Compare(key, hi) < 0)
}

// ask finds the answer for key, and the span in which it holds.
func (p *tombstonePlace) ask(c *tablecache.Cache, key []byte, at base.SeqNum) error {
	if p.memory != nil {
		p.lo, p.hi, p.seq = p.memory.Span(key, at)
		p.known = true
		return nil
	}
	p.known = false
	i, t := p.run.Find(key)
	if t == nil || !t.Contains(key) {
		p.outside(i, t)
		return nil
	}
	if t != p.open {
		set, err := t.Tombstones(c)
		if err != nil {
			return err
		}
		p.open, p.set, p.near = t, set, 0
	}
	p.lo, p.hi, p.seq = p.set.Span(key, at, &p.near)
	p.within(i, t)
	p.known = true
	return nil
}

// outside makes the answer for a key that no table admits. Table t is the one that Find has found, at position i.
func (p *tombstonePlace) outside(i int, t *version.Table) {
	p.lo, p.hi, p.seq, p.known = nil, nil, 0, true
	if t != nil {
		p.hi = t.Smallest
	}
	if i > 0 {
		p.lo = p.run.At(i - 1).UpperBound()
	}
}

// within ends an answer out of table t, at position i, at the table's bounds, where other tables' begin.
func (p *tombstonePlace) within(i int, t *version.Table) {
	if p.lo == nil && i > 0 {
		p.lo = t.Smallest
	}
	if p.hi == nil && i+1 < p.run.Len() {
		p.hi = p.run.At(i + 1).Smallest
	}
}
