// Package changefeed reads the history of a store, commit by commit, for the consumer of a slot.
package changefeed

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/changelog"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Store is what slots need of the store that they are of.
type Store struct {
	FS   vfs.FS
	Dir  string
	Hint string // the command that errors about damage tell the user to run

	// Last returns the last write that is visible.
	Last func() (base.SeqNum, error)
	// Ack makes durable that the consumer of a slot has all writes up to number seq.
	Ack func(slot string, seq base.SeqNum) error
	// Release takes a slot from its consumer.
	Release func(slot string)
	// Locate returns what has the first write after number at: a part that is kept, or a log whose writes are in no
	// table yet. Of that Last is its last write, or base.MaxSeqNum while it takes writes.
	Locate func(slot string, at base.SeqNum) (manifest.KeptPart, error)
	// Await returns, once a write after number at is durable, the last write that is.
	Await func(ctx context.Context, at base.SeqNum) (base.SeqNum, error)
	// ExplainLoss returns why a file that must be there may be gone; nil: nothing is known.
	ExplainLoss func() error
	// Interrupted returns an error if the store is closed, or ctx has ended.
	Interrupted func(ctx context.Context) error
}

// A Slot is a place in the history of a store that has a name, and is durable. What comes after it is kept until its
// consumer acknowledges it. One consumer at a time has a slot. Its methods are for one goroutine at a time, but Close
// may be called at any time.
type Slot struct {
	store     *Store
	name      string
	position  base.SeqNum // of the last change that the consumer has
	delivered base.SeqNum // of the last change that was yielded

	closing sync.Once
	open    context.Context // ends with Close
	end     context.CancelFunc
}

// New returns a slot that is open, whose consumer has the writes up to number acked.
func New(s *Store, name string, acked base.SeqNum) *Slot {
	open, end := context.WithCancel(context.Background())
	return &Slot{store: s, name: name, position: acked, delivered: acked, open: open, end: end}
}

// Name returns the slot's name.
func (s *Slot) Name() string { return s.name }

// Position returns the last write that the consumer has: of the change before the one that Changes yielded last, or of
// one that was acknowledged or skipped since. Of a new slot it is the last write of its snapshot.
func (s *Slot) Position() uint64 { return uint64(s.position) }

// Changes yields each commit after Position, once and in order, and waits for the next until ctx ends. The consumer has
// a change when the loop goes on to the next: one at which it breaks off comes again, unless it was acknowledged or
// skipped. A change is in memory as a whole, and valid until the next.
//
// With prefixes, Changes yields commits with writes of keys that begin with one of them, and only these writes. A
// deleted range that may have such keys is yielded as it is. Other commits are passed over. A change without writes
// follows now and then, so that Position moves on and can be acknowledged.
//
// A change is yielded when it is durable: no crash takes it back. If commits with NoSync or Async are waited for,
// Changes has them synced, at most once in two milliseconds.
//
// An error is the last that Changes yields. It matches that of ctx if ctx ended, kv.ErrClosed if slot or store were
// closed, kv.ErrSlotLost if history that the slot needs was given up, and kv.ErrCorruption if it is damaged. After any
// other one, of the disk, Changes may be called again, and goes on where it was.
func (s *Slot) Changes(ctx context.Context, prefixes ...[]byte) iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.open, cancel)()
		r := newReader(s, prefixes)
		defer r.close()
		for {
			r.at = max(r.at, s.position) // the consumer may have skipped some
			c, err := r.next(ctx)
			if err = cmp.Or(s.check(), err); err != nil {
				yield(nil, err)
				return
			}
			last := c.last
			s.delivered = max(s.delivered, last)
			if !yield(c, nil) {
				return
			}
			s.position = max(s.position, last)
		}
	}
}

func (s *Slot) check() error {
	if s.open.Err() != nil {
		return fmt.Errorf("siftkv: the slot: %w", base.ErrClosed)
	}
	return nil
}

// Skip says that the consumer has all changes up to the one whose last write is seq, though it has not acknowledged
// them: it has noted the number with what it makes of the changes. So it gets each change once, whatever crashes. A
// number below Position changes nothing. For one that the store has not, the error matches ErrSlotLost.
func (s *Slot) Skip(seq uint64) error {
	if err := s.check(); err != nil {
		return err
	}
	if seq > uint64(s.delivered) {
		switch last, err := s.store.Last(); {
		case err != nil:
			return err
		case seq > uint64(last):
			return fmt.Errorf("%w: its consumer has a write that the store has not: %d, and the store has writes up "+
				"to %d", changelog.ErrLost, seq, last)
		}
	}
	s.position = max(s.position, base.SeqNum(seq))
	s.delivered = max(s.delivered, s.position)
	return nil
}

// Ack makes durable that the consumer is done with all changes up to the one whose last write is seq, and lets the
// store remove what no slot needs any more. After a crash Changes goes on there. An acknowledgement costs a small file
// that is written and synced, in an object store a PUT: many changes may share one. One of a change before the last
// that was acknowledged does nothing.
func (s *Slot) Ack(seq uint64) error {
	if err := s.check(); err != nil {
		return err
	}
	if seq > uint64(s.delivered) {
		return fmt.Errorf("siftkv: the slot has not delivered the write that was acknowledged: %d, after %d", seq,
			s.delivered)
	}
	err := s.store.Ack(s.name, base.SeqNum(seq))
	if err == nil {
		s.position = max(s.position, base.SeqNum(seq))
	}
	return err
}

// Close gives the slot back, as it was acknowledged: another consumer can open it. Changes that waits ends. A second
// Close does nothing.
func (s *Slot) Close() error {
	s.closing.Do(func() {
		s.end()
		s.store.Release(s.name)
	})
	return nil
}
