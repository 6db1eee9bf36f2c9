package sequence

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/objstore"
)

// CreateData puts data of a store into a slot without a writer, and reports whether it did: another entry may be there.
// The epoch is the slot before, as if that had the writer's fence. Errors are those of Writer.Put. It is a PUT, and a
// GET if the slot turns out to be taken.
func (s *Sequence) CreateData(ctx context.Context, slot, store uint64, body []byte) (created bool, err error) {
	e := Entry{Slot: slot, Epoch: slot - 1, Store: store, Body: body}
	_, _ = rand.Read(e.nonce[:]) // never fails
	_, created, err = s.create(ctx, slot, s.Encode(e))
	return created, err
}

// create puts an object into a slot unless there is one, and finds out what is there: the caller's own (then all is
// well, whichever try put it there), or another. An error matches objstore.ErrUnknown unless the object is not there
// and never will be, and ErrMoved if what was there was deleted before it could be read.
func (s *Sequence) create(ctx context.Context, slot uint64, object []byte) (other Entry, own bool, err error) {
	var unknown error
	fail := func(err error) error {
		if unknown != nil && !errors.Is(err, objstore.ErrUnknown) {
			err = fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
		}
		return fmt.Errorf("siftkv: put slot %d: %w", slot, err)
	}
	for tries := 0; ; tries++ {
		err := s.store.PutIfAbsent(ctx, s.Key(slot), object)
		switch {
		case err == nil:
			return Entry{}, true, nil
		case errors.Is(err, objstore.ErrUnknown):
			unknown = err
		case errors.Is(err, objstore.ErrThrottled):
		case errors.Is(err, objstore.ErrExists):
			var held []byte
			other, held, err = s.inTheWay(ctx, slot, len(object))
			if err == nil {
				return other, bytes.Equal(held, object), nil
			}
			if errors.Is(err, base.ErrCorruption) {
				return Entry{}, false, err
			}
			// It was deleted meanwhile. For a writer that was its own data, as fences stay, and another try may put it
			// here again. A caller that puts a fence then verifies that this is still the end.
			if !IsMissing(err) {
				return Entry{}, false, fail(err)
			}
		default:
			return Entry{}, false, fail(err)
		}
		if !s.Wait(ctx, tries) {
			if IsMissing(err) { // data is deleted only after newer data was put
				err = fmt.Errorf("%w: %w", ErrMoved, err)
			}
			return Entry{}, false, fail(errors.Join(err, ctx.Err()))
		}
	}
}

// inTheWay returns what is in a slot that is taken.
func (s *Sequence) inTheWay(ctx context.Context, slot uint64, size int) (e Entry, object []byte, err error) {
	for tries := 0; ; tries++ {
		e, object, err = s.get(ctx, slot, size)
		if err == nil || IsMissing(err) || tries == ReadTries-1 || !s.Wait(ctx, tries) {
			return e, object, err
		}
	}
}
