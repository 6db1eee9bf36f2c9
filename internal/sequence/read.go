package sequence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/objstore"
)

// ReadTries bounds the tries of a read.
const ReadTries = 5

// The first request for an object of unknown size asks for guess bytes. Each later one asks for at most fetchGrowth
// times the bytes that were read, so that a false header cannot cause a large allocation.
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
			if Transient(err) && tries < ReadTries-1 && s.Wait(ctx, tries) {
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

// Transient reports whether a read may well succeed when it is tried again: the reply broke off, or there were too many
// requests. The store's client has tried as often as it finds right; these are for stores that do not.
func Transient(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, objstore.ErrThrottled)
}

func (s *Sequence) fetch(ctx context.Context, slot uint64, size int) ([]byte, error) {
	key := s.Key(slot)
	b := make([]byte, max(size, HeaderSize))
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
	if n < cap(b)/2 {
		return bytes.Clone(b[:n]), nil // the caller may keep it
	}
	return b[:n:n], nil
}

// IsMissing reports whether an object is not there.
func IsMissing(err error) bool { return errors.Is(err, objstore.ErrNotExist) }
