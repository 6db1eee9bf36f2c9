package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/objstore"
)

// The first request for an object whose size is not known asks for guess bytes; each that follows for at most
// fetchGrowth times as much as is there, so that a header cannot make its reader allocate what is not there.
const (
	guess       = 64 << 10
	fetchGrowth = 16
)

// Get returns the entry in a slot. The error matches objstore.ErrNotExist if there is none, or none any more.
//
// An object of 64 KiB is one GET, one of 1 MiB two, one of 17 MiB three. A damaged one is fetched twice;
// what breaks off or comes too fast is tried five times.
func (s *Sequence) Get(ctx context.Context, slot uint64) (Entry, error) {
	e, _, err := s.get(ctx, slot, guess)
	return e, err
}

// get returns the entry in a slot and the object's bytes. An object of size bytes, or fewer, is one request.
func (s *Sequence) get(ctx context.Context, slot uint64, size int) (e Entry, b []byte, err error) {
	damaged := false
	for tries := 0; ; tries++ {
		b, err = s.fetch(ctx, slot, size)
		if err != nil {
			if passing(err) && tries < readTries-1 && s.wait(ctx, tries) {
				continue
			}
			return Entry{}, nil, err
		}
		if e, err = s.decode(b, slot); damaged || !errors.Is(err, base.ErrCorruption) {
			return e, b, err
		}
		damaged = true // by the transport, it may be
	}
}

// passing reports whether a read may well succeed when it is tried again: the reply broke off, or there were too many
// requests. The store's client has tried as often as it finds right; these are for stores that do not.
func passing(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, objstore.ErrThrottled)
}

func (s *Sequence) fetch(ctx context.Context, slot uint64, size int) ([]byte, error) {
	key := s.key(slot)
	b := make([]byte, max(size, headerSize))
	n, err := s.store.GetRange(ctx, key, 0, b)
	for err == nil {
		total, ok := sizeOf(b)
		if !ok || total <= uint64(n) {
			break
		}
		more := int(min(total-uint64(n), fetchGrowth*uint64(n)))
		b = slices.Grow(b, more)[:n+more]
		var m int
		m, err = s.store.GetRange(ctx, key, int64(n), b[n:])
		n += m
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("siftkv: read slot %d: %w", slot, err)
	}
	return b[:n:n], nil
}

// An End is where a sequence ends.
type End struct {
	Last  uint64 // the last slot; 0 if the sequence is empty
	Epoch uint64 // of that entry: no entry has a higher one
	Data  Entry  // the newest that is no fence; its Slot is 0 if there is none
}

// Newest returns where the sequence ends, by what a listing shows: a later entry may be there if listings lag.
//
// It is one LIST, of which one page is asked for, and one GET; two, one after the other, if the sequence ends with a
// fence. That is so however many entries and fences there are.
func (s *Sequence) Newest(ctx context.Context) (End, error) {
	const tries = 4 // what was listed may be gone already: then something newer is there
	for try := 1; ; try++ {
		end, err := s.newest(ctx)
		if err == nil || !isMissing(err) || try == tries {
			return end, err
		}
	}
}

func (s *Sequence) newest(ctx context.Context) (End, error) {
	last, size, err := s.top(ctx)
	if err != nil || last == 0 {
		return End{}, err
	}
	e, _, err := s.get(ctx, last, size)
	end := End{Last: last, Epoch: e.Epoch, Data: e}
	if err == nil && e.Fence {
		end.Data = Entry{}
		if e.newest > 0 {
			end.Data, err = s.Get(ctx, e.newest)
		}
	}
	if err != nil {
		return End{}, err
	}
	return end, nil
}

// maxSize is the most that a listing is believed of an object's size: what is bigger is read in several requests.
const maxSize = 64 << 20

// top returns the newest slot that a listing shows, and the size of its object; slot 0 if there is none. It is one
// LIST.
func (s *Sequence) top(ctx context.Context) (slot uint64, size int, err error) {
	for o, err := range s.store.List(ctx, s.prefix, "") {
		if err != nil {
			return 0, 0, fmt.Errorf("siftkv: list %s: %w", s.prefix, err)
		}
		if slot, ok := s.slotOf(o.Key); ok {
			return slot, int(min(o.Size, maxSize)), nil
		}
	}
	return 0, 0, nil
}

// isMissing reports whether an object is not there.
func isMissing(err error) bool { return errors.Is(err, objstore.ErrNotExist) }
