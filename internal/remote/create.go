package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/objstore"
)

// readTries bounds the tries of a read or a deletion.
const readTries = 5

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
		err := s.store.PutIfAbsent(ctx, s.key(slot), object)
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
			if !isMissing(err) {
				return Entry{}, false, fail(err)
			}
		default:
			return Entry{}, false, fail(err)
		}
		if !s.wait(ctx, tries) {
			if isMissing(err) { // data is deleted only after newer data was put
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
		if err == nil || isMissing(err) || tries == readTries-1 || !s.wait(ctx, tries) {
			return e, object, err
		}
	}
}
