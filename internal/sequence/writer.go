package sequence

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/objstore"
)

// A Writer puts entries into a sequence, one after the other, until another writer takes over. It is safe for
// concurrent use: calls wait for each other.
type Writer struct {
	s      *Sequence
	header Entry // store, epoch and nonce
	next   atomic.Uint64

	mu      sync.Mutex
	pending []byte // the object for the next slot, if it is unknown whether it is there
	broken  error  // for ever
}

func newWriter(s *Sequence, fence Entry) *Writer {
	w := &Writer{s: s, header: Entry{Epoch: fence.Epoch, Store: s.id.Load(), nonce: fence.nonce}}
	w.next.Store(fence.Slot + 1)
	return w
}

// Epoch returns the writer's epoch.
func (w *Writer) Epoch() uint64 { return w.header.Epoch }

// Nonce returns a random number of the writer.
func (w *Writer) Nonce() uint64 { return binary.LittleEndian.Uint64(w.header.nonce[:]) }

// Next returns the slot of the next entry, or of the one that is being put.
func (w *Writer) Next() uint64 { return w.next.Load() }

// Put puts data into the next slot and returns that. When it returns without an error, the entry is durable: every
// later opening of the sequence finds it, after the writer's earlier entries. body returns the entry's content, once
// its slot is certain.
//
// It tries again, with growing pauses, while the outcome is unknown and when there are too many requests, until ctx
// ends; without a deadline it waits for a store that cannot be reached.
//
// An error that matches base.ErrFenced is for ever: the entry is not there and never will be. After one that matches
// objstore.ErrUnknown it may be there; the next Put first makes sure that it is, and then puts its own. After any other
// error it is not there, and the next Put gets the slot.
//
// It is one PUT, and a GET if the slot turns out to be taken: by another writer, or by an earlier try.
func (w *Writer) Put(ctx context.Context, body func(slot uint64) []byte) (slot uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return 0, w.broken
	}
	if w.pending != nil {
		if err := w.put(ctx, w.pending); err != nil {
			return 0, err
		}
	}
	e := w.header
	e.Slot = w.next.Load()
	e.Body = body(e.Slot)
	return e.Slot, w.put(ctx, w.s.Encode(e))
}

// put puts an object into the next slot. The lock is held.
func (w *Writer) put(ctx context.Context, object []byte) error {
	slot := w.next.Load()
	other, own, err := w.s.create(ctx, slot, object)
	switch {
	case own:
		w.pending = nil
		w.next.Add(1)
		return nil
	case err == nil:
		w.broken = &FencedError{Key: w.s.Key(slot), Own: w.header.Epoch, Epoch: other.Epoch}
		w.pending = nil
		return w.broken
	case errors.Is(err, objstore.ErrUnknown):
		w.pending = object
	case errors.Is(err, base.ErrCorruption) || errors.Is(err, manifest.ErrNewerFormat):
		w.broken = err // of what another writer has put there
	}
	return err
}

// Confirm returns nil if no other writer had taken over when it was called, and an error that matches base.ErrFenced if
// one has. After any other error the writer does not know. It is a GET; two while an entry is being put, or may be
// there.
//
// The successor's fence is in the first slot that was free, and is never deleted. That is the next slot, or the one
// after it if an entry of this writer was put there; the successor may have deleted that entry since.
func (w *Writer) Confirm(ctx context.Context) error {
	first := w.next.Load()
	last := first + 1
	if w.mu.TryLock() {
		first = w.next.Load()
		if last = first; w.pending != nil {
			last++
		}
		w.mu.Unlock()
	}
	for slot := first; slot <= last; slot++ {
		e, _, err := w.s.get(ctx, slot, HeaderSize)
		switch {
		case IsMissing(err):
		case err != nil:
			return err
		case e.Epoch > w.header.Epoch:
			return &FencedError{Key: w.s.Key(slot), Own: w.header.Epoch, Epoch: e.Epoch}
		}
	}
	return nil
}
