package kv

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/values"
)

// An iterator reads a blob value before a move returns true, since Value cannot fail. Going forward it knows by then
// that the value is the one to show. Going backward it reaches older versions first, and keeps the handle until it has
// seen the newest.

// liveHandle returns the handle of an entry, and whether its value can still be seen.
func (i *cursor) liveHandle(key, value []byte, kind base.Kind) (h blob.Handle, expiry uint64, live bool, err error) {
	h, expiry, err = values.HandleOf(key, value, kind)
	return h, expiry, err == nil && (!kind.Expires() || i.db.now() < expiry), err
}

// showApart makes the value of the input's entry that of the entry that the iterator is on, if it can be
// seen.
func (i *cursor) showApart(kind base.Kind) (live bool, err error) {
	h, expiry, live, err := i.liveHandle(i.key, i.input.Value(), kind)
	if !live {
		return false, err
	}
	i.expiry, i.valid = expiry, true
	if i.keysOnly {
		i.value, i.size = nil, int(h.Size)
		if i.plain && kind == base.KindSetApart {
			i.settle()
		}
		return true, nil
	}
	err = i.bring(h)
	return err == nil, err
}

// bring reads the value that a handle refers to, for the entry that the iterator is on. It reads it alone or, within a
// scan, with those after it.
func (i *cursor) bring(h blob.Handle) (err error) {
	switch p := i.parts; {
	case p.on.filling && !p.on.off:
		i.value, i.apart = nil, h
		return nil
	case i.readsOn(h):
		return i.readFrom(h)
	}
	i.value, err = i.fetch(i.key, h)
	i.valid = err == nil
	return err
}

// sizedApart reports whether the entry of a table, going forward for keys alone, is one with a handle and
// nothing else to decide, and notes the size of its value.
func (i *cursor) sizedApart(t *sstable.Iter, kind base.Kind) bool {
	if kind != base.KindSetApart {
		return false
	}
	h, err := blob.DecodeHandle(t.Value())
	i.size = int(h.Size)
	return err == nil // else the merge reports it
}

// fetch reads a value. It is valid until the next one is.
func (i *cursor) fetch(key []byte, h blob.Handle) ([]byte, error) {
	p := i.parts
	value, err := i.db.values.Append(p.apart[:0], i.state.version, key, h)
	if err == nil {
		p.apart = value
		i.db.counters.Stripes[i.stripe].Blobs.Count(h)
	}
	return value, err
}

// partApart is part for an entry with a handle.
func (i *cursor) partApart(k base.InternalKey) (value []byte, live bool, err error) {
	h, _, live, err := i.liveHandle(k.User, i.input.Value(), k.Kind())
	if live {
		value, err = i.fetch(k.User, h)
	}
	return value, live && err == nil, err
}

// keepApart is collectOlder for an entry with a handle that no tombstone covers.
func (i *cursor) keepApart(k base.InternalKey) bool {
	h, expiry, live, err := i.liveHandle(k.User, i.input.Value(), k.Kind())
	i.unread = err
	if i.value = nil; live {
		i.size, i.expiry, i.apart = int(h.Size), expiry, h
	}
	return live || err != nil
}

// fetchOlder reads the value whose handle keepApart has kept, if any, for operands over it.
func (i *cursor) fetchOlder() {
	if i.apart.File == 0 || i.keysOnly || i.unread != nil {
		return
	}
	i.value, i.unread = i.fetch(i.key, i.apart)
	i.apart = blob.Handle{}
}

// showOlderApart is showOlder of a value without operands, of which keepApart may have kept the handle.
func (i *cursor) showOlderApart() bool {
	err := i.unread
	if i.valid = err == nil; i.valid && i.apart.File > 0 && !i.keysOnly {
		h := i.apart
		i.apart = blob.Handle{}
		err = i.bring(h)
	}
	i.err = i.cannotShow(err)
	return i.valid
}
