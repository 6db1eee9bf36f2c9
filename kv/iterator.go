package kv

import (
	"errors"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/cursor"
)

// An Iterator walks the live keys of a store in order, both ways, as of the moment it was made. It starts on no entry:
// First, Last or a seek puts it on one. Every move reports whether it is on an entry; after false, Error tells an end
// from a failure. It is not safe for concurrent use. Close it: it keeps files on disk and memory in use.
type Iterator struct {
	c   *cursor.Cursor // nil: closed. Others use it again then, and the Iterator stays closed.
	err error          // of one that is closed

	d      *DB
	state  *readState
	stripe int // of the reference on state
}

// IterOptions bound an iterator, and say what it is for. Nil is no bounds, keys and values.
type IterOptions struct {
	// LowerBound is the smallest key that the iterator may reach; UpperBound is the
	// smallest key past its range. Nil: no bound. Both are copied.
	LowerBound, UpperBound []byte

	// Prefix keeps the iterator to the keys that begin with it; together with bounds, to the keys for which all of them
	// hold. It costs what LowerBound: Prefix and UpperBound: PrefixEnd(Prefix) would, no more than a comparison. Where
	// Options.Prefix extracts a prefix of it, files without such keys are passed over. Empty: all keys. It is copied.
	Prefix []byte

	// KeysOnly leaves values out: Iterator.Value is nil. Values are not copied, and operands not combined. A key with
	// operands is there, whatever a Merger would say to them, and its Iterator.ValueSize is -1. The same blocks are
	// read, as values are next to their keys, but no blob files.
	KeysOnly bool
}

// A ValueError names a key whose value MultiGet or an iterator cannot return: its fields are Key and Cause. The value
// is damaged or cannot be read, or its operands cannot be combined. The iterator is on no entry then, and Next and Prev
// go on from the key.
type ValueError = base.ValueError

// PrefixEnd returns the first key past all keys that begin with prefix, for IterOptions.UpperBound, DeleteRange or
// Compact. That is prefix up to its last byte that is not 0xff, and that byte plus one. If there is no such byte, as
// in an empty prefix, it returns nil, which for all of these means no bound. DeletePrefix refuses an empty prefix. The
// result is the caller's.
func PrefixEnd(prefix []byte) []byte { return cursor.AppendPrefixEnd(nil, prefix) }

// NewIter returns an iterator over the present. It sees nothing that is written later.
func (d *DB) NewIter(o *IterOptions) (*Iterator, error) { return d.present.iter(o, nil) }

// iter returns an iterator over the view, and a transaction's own writes if own is not nil.
func (v *readView) iter(o *IterOptions, own *cursor.Overlay) (*Iterator, error) {
	d := v.d
	s, stripe, at := v.enter(int(d.counters.Iterators.Add(1)) & (counters.NumStripes - 1))
	if s == nil {
		return nil, v.refused()
	}
	it := &Iterator{d: d, state: s, stripe: stripe}
	defer func() {
		if it.c == nil { // Options.Prefix panicked, or the view has ended
			s.release(stripe)
		}
	}()
	if v.ended() {
		return nil, ErrClosed
	}
	it.c = cursor.New(&d.cursors, cursor.View{Mem: s.mem, Imms: s.imms, Version: s.version, Operands: &s.operands,
		At: at, Stripe: stripe, Own: own}, (*cursor.Options)(o))
	d.handles.iterators.Add(it, d.opts.TraceOpens, 1)
	return it, nil
}

// Close releases the iterator. A second Close does nothing.
func (i *Iterator) Close() error {
	if i.c == nil {
		return nil
	}
	i.d.handles.iterators.Remove(i, i.d.opts.TraceOpens)
	i.err = i.c.Close()
	i.state.release(i.stripe)
	*i = Iterator{err: i.err}
	if errors.Is(i.err, ErrClosed) || errors.Is(i.err, ErrTxDone) {
		return nil
	}
	return i.err
}

// Error returns what ended the iteration early: a damaged file, a failed read, or
// ErrClosed. Nil at an end. A *ValueError is the failure of one value: Next and Prev go on from its key.
func (i *Iterator) Error() error {
	if i.c == nil {
		return i.err
	}
	return i.c.Error()
}

// Valid reports whether the iterator is on an entry.
func (i *Iterator) Valid() bool { return i.c.Valid() }

// Key returns the key, valid until the next move. The caller must not change it.
func (i *Iterator) Key() []byte { return i.c.Key() }

// Value returns the value, valid until the next move; nil with IterOptions.KeysOnly. The caller must not change it.
func (i *Iterator) Value() []byte { return i.c.Value() }

// ValueSize returns the length of the value in bytes: that of Value, and with IterOptions.KeysOnly what it would be.
// There it is -1 for a key with operands, which would have to be combined: DB.GetSize does that. On no entry it is 0.
func (i *Iterator) ValueSize() int { return i.c.Size() }

// Expiry returns the moment at which the key ends, as DB.Expiry does: the zero Time for never, for a key with
// operands, and on no entry. The iterator stays on a key whose moment comes, and passes over it after that.
func (i *Iterator) Expiry() time.Time { return expiryTime(i.c.Expiry()) }

// open reports whether the iterator is open. If not, Error is ErrClosed from now on.
func (i *Iterator) open() bool {
	if i.c == nil {
		i.err = ErrClosed
	}
	return i.c != nil
}

// First moves to the first entry within the bounds.
func (i *Iterator) First() bool { return i.open() && i.c.First() }

// Last moves to the last entry within the bounds.
func (i *Iterator) Last() bool { return i.open() && i.c.Last() }

// SeekGE moves to the first entry at or after key, within the bounds.
func (i *Iterator) SeekGE(key []byte) bool { return i.open() && i.c.SeekGE(key) }

// SeekLT moves to the last entry before key, within the bounds.
func (i *Iterator) SeekLT(key []byte) bool { return i.open() && i.c.SeekLT(key) }

// Next moves to the next entry. If the iterator is on none, it does nothing, unless Error is a *ValueError: then it
// goes on from that key.
func (i *Iterator) Next() bool { return i.c != nil && i.c.Next() }

// Prev moves to the entry before. If the iterator is on none, it does as Next.
func (i *Iterator) Prev() bool { return i.c != nil && i.c.Prev() }
