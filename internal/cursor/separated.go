package cursor

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A cursor reads a blob value before a move returns true, since Value cannot fail. Going forward it knows by then
// that the value is the one to show. Going backward it reaches older versions first, and keeps the handle until it has
// seen the newest.

// showHandle shows the blob value of the input's entry.
func (c *Cursor) showHandle(h blob.Handle, kind base.Kind) error {
	c.valid = true
	if !c.keysOnly {
		return c.load(h)
	}
	if c.value, c.size = nil, int(h.Size); c.plain && kind == base.KindSetSeparated {
		c.enterTable()
	}
	return nil
}

// load reads the value that a handle refers to, for the entry that the cursor is on. It reads the value alone or,
// within a scan, with those after it.
func (c *Cursor) load(h blob.Handle) error {
	switch {
	case c.parts.ahead.filling && !c.single:
		c.value, c.handle = nil, h
		return nil
	case c.prefetches(h):
		return c.prefetchFrom(h)
	}
	return c.loadAlone(h)
}

// loadAlone is load of one value.
func (c *Cursor) loadAlone(h blob.Handle) (err error) {
	c.value, err = c.fetch(c.key, h)
	c.valid = err == nil
	return err
}

// sizedInTable reports whether the entry of a table, going forward for keys alone, is one with a handle and
// nothing else to decide, and notes the size of its value.
func (c *Cursor) sizedInTable(t *sstable.Iter, kind base.Kind) bool {
	if kind != base.KindSetSeparated {
		return false
	}
	h, err := blob.DecodeHandle(t.Value())
	c.size = int(h.Size)
	return err == nil // else the merge reports it
}

// fetch reads a value. It is valid until the next one is.
func (c *Cursor) fetch(key []byte, h blob.Handle) ([]byte, error) {
	p := c.parts
	value, err := c.env.Values.Append(p.blob[:0], c.view.Version, key, h)
	if err == nil {
		p.blob = value
		c.env.Counters.Stripes[c.view.Stripe].Blobs.Count(h)
	}
	return value, err
}
