package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

// A Look is what a page of a listing shows of the end of a sequence, and what was read on the way from there.
type Look struct {
	Last uint64 // the last slot; 0 if the sequence is empty
	Data uint64 // the newest with data; 0 if there is none

	span  time.Duration    // between the oldest data that is listed and the newest entry, by the store's clock
	sizes map[uint64]int   // of objects, by slots
	read  map[uint64]Entry // what need not be read again
}

const (
	pageSize = 1000     // objects of a listing that are one request
	maxSize  = 64 << 20 // the most that a listing is believed of an object's size: more is read in several requests
)

// Look returns where the sequence ends, by what a listing shows: a later entry may be there if listings lag.
//
// It is one LIST of one page. If all of that are fences, it is one or two GETs more, however many there are.
func (s *Sequence) Look(ctx context.Context) (*Look, error) {
	const tries = 4 // what was listed may be gone already: then something newer is there
	for try := 1; ; try++ {
		l, err := s.look(ctx)
		if err == nil {
			s.looked.Store(l.Data)
		}
		if err == nil || !isMissing(err) || try == tries {
			return l, err
		}
	}
}

func (s *Sequence) look(ctx context.Context) (*Look, error) {
	l, listed := &Look{sizes: map[uint64]int{}, read: map[uint64]Entry{}}, 0
	var newest time.Time
	for o, err := range s.store.List(ctx, s.prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("siftkv: list %s: %w", s.prefix, err)
		}
		if slot, ok := s.slotOf(o.Key); ok {
			l.sizes[slot] = int(min(o.Size, maxSize))
			if slot > l.Last {
				l.Last, newest = slot, o.ModTime
			}
			if o.Size != fenceSize {
				l.Data = max(l.Data, slot)
				l.span = newest.Sub(o.ModTime)
			}
		}
		if listed++; listed == pageSize {
			break
		}
	}
	if listed < pageSize || l.Data > 0 {
		return l, nil
	}
	e, err := s.entry(ctx, l, l.Last) // that fence tells where the data is
	if err == nil && e.newest > 0 {
		l.Data = e.newest
		_, err = s.data(ctx, l, l.Data)
	}
	return l, err
}

// end is Look without the data: it is one LIST.
func (s *Sequence) end(ctx context.Context) (*Look, error) {
	l := &Look{sizes: map[uint64]int{}, read: map[uint64]Entry{}}
	for o, err := range s.store.List(ctx, s.prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("siftkv: list %s: %w", s.prefix, err)
		}
		if slot, ok := s.slotOf(o.Key); ok {
			l.Last = slot
			break
		}
	}
	return l, nil
}

// entry returns the entry in a slot, which is read once.
func (s *Sequence) entry(ctx context.Context, l *Look, slot uint64) (Entry, error) {
	if e, ok := l.read[slot]; ok {
		return e, nil
	}
	e, _, err := s.get(ctx, slot, l.sizeOf(slot))
	if err == nil {
		l.read[slot] = e
	}
	return e, err
}

// data is entry of a slot that had data. If a stalled writer's fence is there, the data was trimmed: the error is that
// of a missing object.
func (s *Sequence) data(ctx context.Context, l *Look, slot uint64) (Entry, error) {
	e, err := s.entry(ctx, l, slot)
	if err == nil && e.Fence {
		err = s.fenced(slot)
	}
	return e, err
}

// fenced is the error of a slot with a fence, where data was.
func (s *Sequence) fenced(slot uint64) error {
	return &objstore.Error{Op: objstore.Get, Key: s.key(slot),
		Err: fmt.Errorf("%w: a fence is there, where data was", objstore.ErrNotExist)}
}

// sizeOf returns the size of the object in a slot; a guess if it is not in the page.
func (l *Look) sizeOf(slot uint64) int {
	if size := l.sizes[slot]; size > 0 {
		return size
	}
	return guess
}

// found notes an entry that follows what was listed.
func (l *Look) found(e Entry) {
	l.read[e.Slot], l.Last = e, e.Slot
	if !e.Fence {
		l.Data = e.Slot
	}
}

// Newest returns the newest data; its Slot is 0 if there is none. It is a Look, and a GET if there is data.
func (s *Sequence) Newest(ctx context.Context) (e Entry, err error) {
	err = s.again(func() error {
		l, err := s.Look(ctx)
		if err == nil && l.Data > 0 {
			e, err = s.data(ctx, l, l.Data)
		}
		return err
	})
	return e, err
}

// again repeats do, which begins with a Look, while do finds that entries were trimmed meanwhile. It goes on as long as
// a Look shows newer data, and for a few more tries, as listings may lag.
func (s *Sequence) again(do func() error) error {
	const tries = 4
	newest := uint64(0)
	for try := 1; ; try++ {
		err := do()
		if !isMissing(err) && !errors.Is(err, ErrMoved) {
			return err
		}
		if data := s.looked.Load(); data > newest {
			newest, try = data, 1
		}
		if try == tries {
			return err
		}
	}
}
