// Package cursor iterates over the live keys of a store, in both directions: it merges memtables and sorted runs, and
// makes one value of the versions of a key. Tombstones, operands and expiry are resolved, and values are read from blob
// files, several at a time in a scan.
//
// A Cursor knows a View of values and files, and an Env of what the store's cursors share. It knows no store.
package cursor

import (
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/lookupwatch"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/operand"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
)

// An Env is what all cursors of a store share.
type Env struct {
	Tables   *tablecache.Cache
	Values   *values.Store
	Counters *counters.Store
	Watch    *lookupwatch.Watch
	Prefix   filterpolicy.Prefix // nil: files have no prefix filters
	Now      func() uint64       // in microseconds since 1970
	Closed   *atomic.Bool        // moves of all cursors fail
}

// A View is what one cursor reads. The caller keeps it in use until after Close.
type View struct {
	Mem      *memtable.Memtable
	Imms     []*memtable.Memtable // being flushed, newest first
	Version  *version.Version
	Operands *operand.Combiner
	At       base.SeqNum // the last visible write
	Stripe   int         // of the counters
	Own      *Overlay    // nil: the cursor is no transaction's
}

// A Cursor walks the live keys of a View. It starts on no entry. Each move reports whether it is on an entry. It is not
// safe for concurrent use.
type Cursor struct {
	env    *Env
	closed *atomic.Bool
	view   View
	lower  []byte
	upper  []byte
	input  *iterator.Merging
	parts  *parts
	plain  bool // neither range tombstones nor own writes

	keysOnly bool // no values are wanted

	// Going forward in a table, of which all entries up to the fence come before any others:
	// the table has the key and the value; see table.go.
	table *sstable.Iter // nil: elsewhere
	fence uint64

	key    []byte
	value  []byte
	size   int    // of the value, if keysOnly is set and it is in no table; -1: there are operands
	expiry uint64 // of the value; 0: none, or there are operands

	baseExpiry uint64 // if there are operands, the expiry of the value under them; 0: none

	returned uint64 // entries that it reached since the last seek: always counted, as that is cheap
	scanning bool   // parts.scan is of the moves since then
	atTurn   uint64 // what returned was when the direction changed since
	seeks    int    // since countScans

	// Going forward, the input is on the entry itself, or past it if position says so. Going backward, it is on the
	// last entry before all versions of key, or on none. In both directions it may be further: see prefetch.go.
	backward bool
	position inputPosition
	single   bool // nothing is prefetched, for newestFirst

	handle   blob.Handle // of the value if it was not read yet; of file 0: it was
	operands [][]byte    // of key, with the value under them; see operands.go
	older    []byte      // the value, going backward
	olderErr error       // going backward: why key has no value to show, as of the versions so far
	valid    bool
	err      error
}

// An inputPosition says where the input of a cursor is.
type inputPosition uint8

const (
	onEntry    inputPosition = iota
	pastEntry                // going forward, at the first entry that is no operand or version of the key
	prefetched               // at the last of the entries that were prefetched, or past it
)

// parts are the inputs and buffers of a cursor.
type parts struct {
	iterator.Sources
	tombs  iterator.Tombstones
	bounds Bounds
	scan   lookupwatch.Scan
	ahead  prefetch
	newer  []byte // of passNewer
	past   []byte // the first key after one
	blob   []byte // a value from a blob file
}

var cursors = sync.Pool{New: func() any { return &Cursor{parts: new(parts)} }}

// New returns a cursor over a view. It copies the options; nil is no bounds, keys and values. It opens no file.
func New(env *Env, view View, o *Options) *Cursor {
	c := cursors.Get().(*Cursor)
	c.env, c.closed, c.view = env, env.Closed, view
	p := c.parts
	if o != nil {
		p.bounds.Set(o)
		c.lower, c.upper, c.keysOnly = p.bounds.Lower, p.bounds.Upper, o.KeysOnly
	}
	p.tombs.Init(view.Version, env.Tables, c.lower, c.upper, view.At)
	if own := view.Own; own != nil && own.index != nil {
		p.AddMemtable(own.index)
	}
	c.addMemtable(view.Mem)
	for _, m := range view.Imms {
		c.addMemtable(m)
	}
	prefix := iterator.PrefixWithin(env.Prefix, c.lower, c.upper, &env.Counters.Prefix)
	p.Tables.KeysOnly = c.keysOnly
	p.AddVersion(view.Version, env.Tables, c.lower, c.upper, prefix)
	c.plain = p.tombs.Empty() && view.Own == nil
	c.input = &p.Merging
	if view.Own != nil {
		view.Own.used = true
	}
	return c
}

func (c *Cursor) addMemtable(m *memtable.Memtable) {
	c.parts.AddMemtable(m)
	c.parts.tombs.AddMemory(m.Tombstones())
}

// maxRetained bounds the length of a buffer that the next cursor uses again.
const maxRetained = 64 << 10

// Close ends the cursor, and returns the error of its last move. The caller forgets the cursor: another may use its
// memory.
func (c *Cursor) Close() error {
	err := c.err
	c.endScan()
	c.view.Own.close()
	c.countScans()
	p := c.parts
	p.Release()
	p.tombs.Release()
	p.ahead.release()
	p.bounds.release()
	p.scan = lookupwatch.Scan{}
	for _, b := range []*[]byte{&c.key, &c.older, &p.newer, &p.past, &p.blob} {
		if cap(*b) > maxRetained {
			*b = nil
		}
		*b = (*b)[:0]
	}
	*c = Cursor{parts: p, key: c.key, older: c.older}
	cursors.Put(c)
	return err
}

// seeksPerCount is how many seeks of a cursor are counted together at the most.
const seeksPerCount = 128

// countScans adds what the inputs counted to the store's counters.
func (c *Cursor) countScans() {
	c.seeks = 0
	levels := &c.env.Counters.Stripes[c.view.Stripe].Levels
	c.parts.Scans(func(level int, s *counters.Scan) { levels[level].Scans.Add(s) })
}

// Valid reports whether the cursor is on an entry. A nil cursor is on none.
func (c *Cursor) Valid() bool { return c != nil && c.valid }

// Error returns what ended the last move early; nil at an end. After a *base.ValueError, Next and Prev go on from its
// key.
func (c *Cursor) Error() error { return c.err }

// Key returns the key, valid until the next move; nil on no entry.
func (c *Cursor) Key() []byte {
	switch {
	case !c.Valid():
		return nil
	case c.table != nil:
		return c.table.User()
	}
	return c.key
}

// Value returns the value, valid until the next move; nil with Options.KeysOnly, and on no entry.
func (c *Cursor) Value() []byte {
	switch {
	case !c.Valid() || c.keysOnly:
		return nil
	case c.table != nil:
		return c.table.Value()
	}
	return c.value
}

// Size returns the length of the value, also with Options.KeysOnly: it is -1 there for a key with operands. On no
// entry it is 0.
func (c *Cursor) Size() int {
	switch {
	case !c.Valid():
		return 0
	case c.table != nil && c.table.Key().Kind() != base.KindSetSeparated:
		return len(c.table.Value())
	case c.table != nil || c.keysOnly:
		return c.size
	}
	return len(c.value)
}

// Expiry returns when the value expires, in microseconds since 1970; 0 for never, with operands, and on no entry.
func (c *Cursor) Expiry() uint64 {
	if !c.Valid() {
		return 0
	}
	return c.expiry
}
