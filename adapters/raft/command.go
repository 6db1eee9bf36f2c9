package siftraft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/kv"
)

// A command, the data of a log entry, is:
//
//	1 byte    format: 1
//	          writes, one after the other, each of
//	  1 byte    what it does: 1 set, 2 delete, 3 delete a range
//	  uvarint   length of the key, and the key
//	            of a set: the length of the value, a uvarint, and the value
//	            of a range, in place of the key, its lower and its upper bound, each:
//	  uvarint   length of the bound and 1, and the bound; 0: there is none
const (
	commandFormat = 1

	opSet         = 1
	opDelete      = 2
	opDeleteRange = 3
)

// MaxCommandSize bounds a command: its bytes, and 400 for each of its writes.
const MaxCommandSize = 256 << 20

// writeCost is what a write takes of MaxCommandSize beside its bytes: about the most that it takes in a batch.
const writeCost = 400

// ErrCommand is the response to an entry whose data is no command that this version knows, or is too large, or writes
// [AppliedKey]. Nothing of it has been applied, on no node.
var ErrCommand = errors.New("siftraft: not a command")

// A Command is writes that an FSM applies together: give its Bytes to [raft.Raft.Apply]. The zero value is empty. It is
// not safe for concurrent use. Keys and values are copied. A write that a store refuses is refused here, and leaves the
// command as it was.
type Command struct {
	data  []byte
	tally tally
}

// Set stores value under key.
func (c *Command) Set(key, value []byte) error {
	err := c.tally.Set(key, value)
	if err == nil {
		c.data = appendBytes(appendBytes(c.begin(opSet), key), value)
	}
	return err
}

// Delete removes key. A key that is not there is no error.
func (c *Command) Delete(key []byte) error {
	err := c.tally.Delete(key)
	if err == nil {
		c.data = appendBytes(c.begin(opDelete), key)
	}
	return err
}

// DeleteRange removes all keys of [lo, hi); a nil lo or hi has no bound.
func (c *Command) DeleteRange(lo, hi []byte) error {
	err := c.tally.DeleteRange(lo, hi)
	if err == nil {
		c.data = appendBound(appendBound(c.begin(opDeleteRange), lo), hi)
	}
	return err
}

// Bytes returns the command. Raft keeps it: Reset the command, and do not go on with it.
func (c *Command) Bytes() []byte {
	if c.data == nil {
		return []byte{commandFormat}
	}
	return c.data
}

// Reset makes the command an empty one with memory of its own.
func (c *Command) Reset() { *c = Command{} }

// begin returns the command with the first byte of another write.
func (c *Command) begin(op byte) []byte {
	if c.data == nil {
		c.data = append(c.data, commandFormat)
	}
	return append(c.data, op)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func appendBound(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(b))+1), b...)
}

// A tally is what writes take of MaxCommandSize, in bytes. It refuses those that no command may have, and does not
// count them.
type tally int

func (t *tally) Set(key, value []byte) error {
	return t.add(len(key)+len(value), checkKey(key), checkSize("value", len(value), kv.MaxValueSize))
}

func (t *tally) Delete(key []byte) error { return t.add(len(key), checkKey(key)) }

func (t *tally) DeleteRange(lo, hi []byte) error {
	return t.add(len(lo)+len(hi), checkSize("key", len(lo), kv.MaxKeySize), checkSize("key", len(hi), kv.MaxKeySize))
}

func (t *tally) add(size int, errs ...error) error {
	with := int(*t) + size + writeCost
	err := errors.Join(append(errs, checkSize("command", with, MaxCommandSize))...)
	if err == nil {
		*t = tally(with)
	}
	return err
}

func checkKey(key []byte) error {
	if string(key) == AppliedKey {
		return fmt.Errorf("%w: the key %q is the FSM's own", ErrCommand, key)
	}
	return checkSize("key", len(key), kv.MaxKeySize)
}

func checkSize(what string, size, most int) error {
	if size > most {
		return fmt.Errorf("%w: %w: a %s has %d bytes, the limit is %d", ErrCommand, kv.ErrTooLarge, what, size, most)
	}
	return nil
}

// A writer takes the writes of a command: a batch or a transaction.
type writer interface {
	Set(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(lo, hi []byte) error
}

var (
	_ writer = (*kv.Batch)(nil)
	_ writer = (*kv.Tx)(nil)
	_ writer = (*Command)(nil)
	_ writer = (*tally)(nil)
)

// applyCommand has w do what a command says: all of it, or nothing if it is none. The slices that w is given are the
// command's.
func applyCommand(w writer, data []byte) error {
	var allowed tally
	if err := replay(data, &allowed); err != nil {
		return err
	}
	return replay(data, w)
}

// replay gives the writes of a command to w, in order, and ends at the first error.
func replay(data []byte, w writer) error {
	if len(data) == 0 || data[0] != commandFormat {
		return fmt.Errorf("%w: it begins with %.1x", ErrCommand, data)
	}
	r := fields{rest: data[1:]}
	for len(r.rest) > 0 {
		var err error
		switch op := r.byte(); op {
		case opSet:
			key, value := r.bytes(), r.bytes()
			err = r.then(func() error { return w.Set(key, value) })
		case opDelete:
			key := r.bytes()
			err = r.then(func() error { return w.Delete(key) })
		case opDeleteRange:
			lo, hi := r.bound(), r.bound()
			err = r.then(func() error { return w.DeleteRange(lo, hi) })
		default:
			err = fmt.Errorf("%w: a write of kind %d", ErrCommand, op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// then calls f if all fields were whole.
func (f *fields) then(call func() error) error {
	if f.short {
		return fmt.Errorf("%w: it ends in the middle of a write", ErrCommand)
	}
	return call()
}

// bound returns a bound of a range, a slice of the record; nil if it says that there is none.
func (f *fields) bound() []byte {
	n := f.uvarint()
	switch {
	case n == 0:
		return nil
	case n-1 > uint64(len(f.rest)):
		f.short, f.rest = true, nil
		return nil
	}
	b := f.rest[: n-1 : n-1]
	f.rest = f.rest[n-1:]
	return b
}
