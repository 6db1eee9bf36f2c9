package kv

import (
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/base"
)

// What an iterator says of a value in addition to its bytes.

// ValueSize returns the length of the value in bytes: that of Value, and with
// IterOptions.KeysOnly what it would be. There it is -1 for a key with operands, which would have
// to be combined: DB.GetSize does that. On no entry it is 0.
func (i *Iterator) ValueSize() int {
	c := i.c
	switch {
	case c == nil || !c.valid:
		return 0
	case c.table != nil && c.table.Key().Kind() == base.KindSetApart:
		return c.size
	case c.table != nil:
		return len(c.table.Value())
	case c.keysOnly:
		return c.size
	}
	return len(c.value)
}

// Expiry returns the moment at which the key ends, as DB.Expiry does: the zero Time for never,
// for a key with operands, and on no entry. The iterator stays on a key whose moment comes, and
// passes over it after that.
func (i *Iterator) Expiry() time.Time {
	c := i.c
	if c == nil || !c.valid {
		return time.Time{}
	}
	return expiryTime(c.expiry)
}

// A ValueError names a key whose value MultiGet or an iterator cannot return. The value is damaged or cannot be read,
// or its operands cannot be combined. The iterator is on no entry then, and Next and Prev go on from the key.
type ValueError struct {
	Key   []byte
	Cause error
}

// Error names the key and the cause.
func (e *ValueError) Error() string {
	return fmt.Sprintf("siftkv: read the value of key %q: %v", e.Key, e.Cause)
}

// Unwrap returns the cause.
func (e *ValueError) Unwrap() error { return e.Cause }

// cannotShow returns the error of a move to i.key; nil if err is nil.
func (i *cursor) cannotShow(err error) error {
	if err == nil {
		return nil
	}
	return withKey(i.key, err)
}

// withKey returns an error as a ValueError.
func withKey(key []byte, err error) error {
	if _, ok := errors.AsType[*ValueError](err); ok {
		return err
	}
	return &ValueError{Key: append([]byte{}, key...), Cause: err}
}

// passable reports whether the last move ended at a value that cannot be shown, so that the next may go on from i.key.
func (i *cursor) passable() bool {
	_, ok := errors.AsType[*ValueError](i.err)
	return ok
}

// show makes value, which is the input's, that of the entry that the iterator is on.
func (i *cursor) show(value []byte) {
	i.value, i.valid = value, true
	if i.keysOnly {
		i.size = len(value)
	}
}

// keep makes value that of i.key, for an input that moves on before it is shown.
func (i *cursor) keep(value []byte) {
	if i.keysOnly {
		i.value, i.size = nil, len(value)
		return
	}
	i.older = append(i.older[:0], value...)
	i.value = i.older
}

// unexpired splits the value of the input's entry, which expires, and notes the moment if it is still to come.
func (i *cursor) unexpired() (value []byte, live bool, err error) {
	raw := i.input.Value()
	if value, live, err = base.Unexpired(raw, i.db.now()); live {
		i.expiry, _, _ = base.CutExpiry(raw)
	}
	return value, live, err
}
