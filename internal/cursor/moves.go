package cursor

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
)

// First moves to the first entry within the bounds.
func (c *Cursor) First() bool {
	if !c.begin(nil, false) {
		return false
	}
	if c.lower != nil {
		return c.seekGE(c.lower)
	}
	c.view.Own.from(nil)
	return c.reached(c.forward(c.input.First(), false))
}

// Last moves to the last entry within the bounds.
func (c *Cursor) Last() bool {
	if !c.begin(nil, true) {
		return false
	}
	if c.upper != nil {
		return c.seekLT(c.upper)
	}
	c.view.Own.before(nil)
	return c.reached(c.back(c.input.Last()))
}

// SeekGE moves to the first entry at or after key, within the bounds.
func (c *Cursor) SeekGE(key []byte) bool {
	if !c.begin(key, false) {
		return false
	}
	if c.lower != nil && bytes.Compare(key, c.lower) < 0 {
		key = c.lower
	}
	return c.seekGE(key)
}

// SeekLT moves to the last entry before key, within the bounds.
func (c *Cursor) SeekLT(key []byte) bool {
	if key == nil {
		key = []byte{} // not the bound
	}
	if !c.begin(key, true) {
		return false
	}
	if c.upper != nil && bytes.Compare(key, c.upper) > 0 {
		key = c.upper
	}
	return c.seekLT(key)
}

func (c *Cursor) seekGE(key []byte) bool {
	c.view.Own.from(key)
	return c.reached(c.forward(c.input.SeekGE(base.SearchKey(key, base.MaxSeqNum)), false))
}

func (c *Cursor) seekLT(key []byte) bool {
	c.view.Own.before(key)
	return c.reached(c.back(c.input.SeekLT(base.SearchKey(key, base.MaxSeqNum))))
}

// Next moves to the next entry. On no entry it does nothing, unless Error is a *base.ValueError: then it goes on from
// that key.
func (c *Cursor) Next() bool {
	if !c.valid && !base.IsValueError(c.err) {
		return false
	}
	if c.table != nil && !c.closed.Load() {
		return c.nextInTable(c.table)
	}
	return c.next()
}

func (c *Cursor) next() bool {
	if !c.usable() {
		return false
	}
	switch {
	case c.backward:
		c.atTurn = c.returned
		return c.reached(c.forward(c.input.SeekGE(base.SearchKey(c.key, base.MaxSeqNum)), true))
	case c.position == prefetched:
		return c.nextPrefetched()
	case c.position == pastEntry:
		return c.reached(c.forward(c.input.Valid(), true))
	}
	return c.reached(c.forward(c.input.Next(), true))
}

// Prev moves to the entry before. On no entry it does as Next.
func (c *Cursor) Prev() bool {
	if !c.valid && !base.IsValueError(c.err) {
		return false
	}
	if c.table != nil {
		c.key = append(c.key[:0], c.table.User()...)
	}
	switch {
	case !c.usable():
		return false
	case !c.backward:
		c.atTurn = c.returned
		return c.reached(c.back(c.input.SeekLT(base.SearchKey(c.key, base.MaxSeqNum))))
	case c.position == prefetched:
		return c.nextPrefetched()
	}
	return c.reached(c.back(c.input.Valid()))
}

// begin prepares a move that begins a scan: at a key, or at a bound if that is nil. It reports whether the cursor can
// move.
func (c *Cursor) begin(key []byte, backward bool) bool {
	if c.scanning || c.env.Watch.Threshold.Load() > 0 {
		c.endScan()
		c.scanning = c.parts.scan.Begin(c.env.Watch, key, c.lower, c.upper, backward)
	}
	c.returned, c.atTurn = 0, 0
	if !c.usable() {
		return false
	}
	if c.seeks++; c.seeks == seeksPerCount {
		c.countScans()
	}
	return true
}

// endScan ends the scan of a tracer or sample, if there is one.
func (c *Cursor) endScan() {
	if c.scanning && c.err == nil { // one that failed is not recorded
		c.parts.scan.End(c.returned, !c.valid, c.keysOnly)
	}
	c.scanning = false
}

// usable makes the cursor one on no entry, and reports whether it can move.
func (c *Cursor) usable() bool {
	c.valid, c.err, c.table, c.expiry = false, nil, nil, 0
	if c.closed.Load() {
		c.err = base.ErrClosed
		return false
	}
	if c.view.Own != nil {
		c.err = c.view.Own.reads.Err
	}
	return c.err == nil
}

// reached counts an entry, if the move reached one, and has the transaction note what the move passed over.
func (c *Cursor) reached(ok bool) bool {
	if ok {
		c.returned++
	}
	if c.view.Own != nil {
		c.view.Own.passed(c, ok || base.IsValueError(c.err))
	}
	return ok
}
