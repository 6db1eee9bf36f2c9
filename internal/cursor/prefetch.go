package cursor

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/values"
)

// A cursor that goes on through blob values prefetches. It moves over some entries before its user does, keeps their
// keys and handles, and reads all the values at once. Then each move takes one of these entries. A turn or a seek drops
// what is left. Most scans reach what was prefetched. If not, that is no more entries than the scan had before, or
// minPrefetch.

const (
	prefetchAfter = 2  // entries that a scan visits before it prefetches
	minPrefetch   = 8  // entries that it prefetches, unless fewer are left
	maxPrefetch   = 64 // entries
	// warmBytes bounds the bytes that are prefetched from memory: they are still in a processor's cache when they are
	// used.
	warmBytes = 256 << 10
	// coldBytes bounds the bytes that are prefetched if reads take long.
	coldBytes = 1 << 20
	// soloSize: a value or record of at least this length is read alone, when the cursor reaches it. To read others
	// with it gains nothing.
	soloSize = 256 << 10
)

// prefetchSize returns how many bytes a value, which may be compressed, takes when it is prefetched.
func prefetchSize(h blob.Handle) int64 { return max(h.Length, h.Size) }

// prefetchLimits returns how many entries, and how many bytes of them, a scan that has visited some prefetches; cold
// says that reads take long.
func prefetchLimits(visited uint64, cold bool) (entries int, bytes int64) {
	entries = int(min(max(visited, minPrefetch), maxPrefetch))
	if cold {
		return entries, coldBytes
	}
	return entries, warmBytes
}

// A prefetch has the entries that a cursor has prefetched.
type prefetch struct {
	entries []prefetchedEntry
	next    int    // of entries, the one that the next move takes
	memory  []byte // keys, and values that are in tables
	blobs   values.ReadBatch

	filling bool // the cursor moves for the sake of entries
	waited  bool // the last reads took long
	budget  *sstable.Budget
	counted int // bytes that the budget has counted

	// What the cursor was when it stopped:
	ended    bool // on no entry
	err      error
	position inputPosition
	table    *sstable.Iter
}

// A prefetchedEntry is an entry of a prefetch. The key, and the value if it is in a table, are parts of memory.
type prefetchedEntry struct {
	key        [2]int
	value      [2]int
	expiry     uint64
	baseExpiry uint64 // when the value changes, as the one under its operands expires; 0: never
	read       int    // of the value, in blobs; -1: it is in memory
	err        error  // why there is no value
}

// visited returns how many entries the cursor has reached in its direction.
func (c *Cursor) visited() uint64 { return c.returned - c.atTurn }

// prefetches reports whether the cursor prefetches, beginning with an entry that has the handle. The cursor of a
// transaction does not: it sees what the transaction writes meanwhile.
func (c *Cursor) prefetches(h blob.Handle) bool {
	return c.visited() >= prefetchAfter && c.view.Own == nil && prefetchSize(h) < soloSize && !c.single
}

// prefetchFrom prefetches, beginning with the entry that the cursor is on, whose handle is given. It shows that entry.
func (c *Cursor) prefetchFrom(h blob.Handle) error {
	p, far := &c.parts.ahead, c.env.Tables.Far
	p.reset()
	entries, limit := prefetchLimits(c.visited(), p.waited || far)
	if far && !p.reserve(&c.env.Tables.Parts, int(limit)) {
		return c.loadAlone(h)
	}
	c.handle = h
	bytes := p.add(c)
	returned := c.returned
	p.filling = true
	for len(p.entries) < entries && bytes < limit {
		if c.handle = (blob.Handle{}); !c.step() && !base.IsValueError(c.err) {
			p.ended, p.err = true, c.err
			break
		}
		bytes += p.add(c)
	}
	p.filling, c.returned = false, returned
	p.position, p.table = c.position, c.table
	c.handle, c.table, c.position, c.err = blob.Handle{}, nil, prefetched, nil
	p.waited = p.blobs.Read(c.env.Values, c.view.Version, far)
	p.blobs.Count(&c.env.Counters.Stripes[c.view.Stripe].Blobs)
	p.next = 1
	return c.showPrefetched(&p.entries[0])
}

// step moves in the cursor's direction, past what was prefetched.
func (c *Cursor) step() bool {
	t := c.table
	c.valid, c.err, c.expiry, c.baseExpiry = t != nil, nil, 0, 0
	switch {
	case t != nil:
		return c.nextInTable(t)
	case c.backward:
		return c.back(c.input.Valid())
	case c.position == pastEntry:
		return c.forward(c.input.Valid(), true)
	}
	return c.forward(c.input.Next(), true)
}

// add adds the entry that the cursor is on, and returns how many bytes its key and value take, without a value that is
// read alone.
func (p *prefetch) add(c *Cursor) int64 {
	key, value := c.key, c.value
	if c.table != nil {
		key, value = c.table.User(), c.table.Value()
	}
	e := prefetchedEntry{expiry: c.expiry, read: -1}
	e.key[0] = len(p.memory)
	p.memory = append(p.memory, key...)
	e.key[1] = len(p.memory)
	n := int64(len(key))
	if e.err = c.err; e.err != nil {
		value = nil
	}
	if h := c.handle; h.File > 0 {
		e.read = len(p.blobs.Reads)
		size := prefetchSize(h)
		alone := size >= soloSize
		if !alone {
			n += size
		}
		// The key stays valid: if memory grows, the old array keeps it.
		p.blobs.Reads = append(p.blobs.Reads, values.Read{Handle: h, Key: p.memory[e.key[0]:e.key[1]], Alone: alone})
	} else {
		e.baseExpiry = c.baseExpiry
		p.memory = append(p.memory, value...)
		n += int64(len(value))
	}
	e.value = [2]int{e.key[1], len(p.memory)}
	p.entries = append(p.entries, e)
	return n
}

// nextPrefetched moves to the next entry that was prefetched, or past all of them.
func (c *Cursor) nextPrefetched() bool {
	p := &c.parts.ahead
	for p.next < len(p.entries) {
		e := &p.entries[p.next]
		p.next++
		if e.expiry > 0 && c.env.Now() >= e.expiry {
			continue
		}
		if e.baseExpiry > 0 && c.env.Now() >= e.baseExpiry {
			c.setKey(e)
			return c.reached(c.again())
		}
		c.err = c.showPrefetched(e)
		return c.reached(c.valid)
	}
	c.setKey(&p.entries[len(p.entries)-1])
	if p.ended {
		c.err = p.err
		return false
	}
	c.position, c.table = p.position, p.table
	if c.table != nil {
		return c.step() // which counts
	}
	return c.reached(c.step())
}

func (c *Cursor) setKey(e *prefetchedEntry) {
	c.key = append(c.key[:0], c.parts.ahead.memory[e.key[0]:e.key[1]]...)
}

// showPrefetched makes an entry the one that the cursor is on.
func (c *Cursor) showPrefetched(e *prefetchedEntry) (err error) {
	p := &c.parts.ahead
	c.setKey(e)
	c.value, c.expiry, err = p.memory[e.value[0]:e.value[1]], e.expiry, e.err
	if e.read >= 0 {
		r := &p.blobs.Reads[e.read]
		if c.value = r.Value; !r.Done {
			c.value, err = c.fetch(c.key, r.Handle)
		}
	}
	c.valid = err == nil
	return base.WithKey(c.key, err)
}

// again moves the input to c.key and decides the key again. It drops what was prefetched.
func (c *Cursor) again() bool {
	if !c.backward {
		return c.forward(c.input.SeekGE(base.SearchKey(c.key, base.MaxSeqNum)), false)
	}
	p := c.parts
	p.past = append(append(p.past[:0], c.key...), 0)
	return c.back(c.input.SeekLT(base.SearchKey(p.past, base.MaxSeqNum)))
}

// reset makes p ready for other entries.
func (p *prefetch) reset() {
	p.entries, p.memory = p.entries[:0], p.memory[:0]
	p.next, p.ended, p.err, p.table = 0, false, nil, nil
	p.blobs.Reset()
}

// reserve has a budget count n bytes until release, and reports whether it has room for them.
func (p *prefetch) reserve(b *sstable.Budget, n int) bool {
	if p.counted > 0 {
		return true
	}
	if !b.Take(n) {
		return false
	}
	p.budget, p.counted = b, n
	return true
}

// release makes p ready for another cursor.
func (p *prefetch) release() {
	if cap(p.entries) == 0 {
		return
	}
	if p.counted > 0 {
		p.budget.Give(p.counted)
	}
	p.reset()
	p.blobs.Release()
	*p = prefetch{entries: p.entries, memory: p.memory, blobs: p.blobs}
	if cap(p.memory) > maxRetained {
		p.memory = nil
	}
}
