package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

// A TailView is what a page of a listing shows of the end of a sequence, and what was read on the way from there.
type TailView struct {
	Last uint64 // the last slot; 0 if the sequence is empty
	Data uint64 // the newest with data; 0 if there is none

	Span  time.Duration    // between the oldest data that is listed and the newest entry, by the store's clock
	sizes map[uint64]int   // of objects, by slots
	read  map[uint64]Entry // what need not be read again
}

const (
	pageSize = 1000     // objects of a listing that are one request
	maxSize  = 64 << 20 // the most that a listing is believed of an object's size: more is read in several requests
)

// Tail returns where the sequence ends, by what a listing shows: a later entry may be there if listings lag.
//
// It is one LIST of one page. If all of that are fences, it is one or two GETs more, however many there are.
func (s *Sequence) Tail(ctx context.Context) (*TailView, error) {
	const tries = 4 // what was listed may be gone already: then something newer is there
	for try := 1; ; try++ {
		v, err := s.readTail(ctx)
		if err == nil {
			s.tailData.Store(v.Data)
		}
		if err == nil || !IsMissing(err) || try == tries {
			return v, err
		}
	}
}

func (s *Sequence) readTail(ctx context.Context) (*TailView, error) {
	v, listed := &TailView{sizes: map[uint64]int{}, read: map[uint64]Entry{}}, 0
	var newest time.Time
	for o, err := range s.store.List(ctx, s.prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("siftkv: list %s: %w", s.prefix, err)
		}
		if slot, ok := s.SlotOf(o.Key); ok {
			v.sizes[slot] = int(min(o.Size, maxSize))
			if slot > v.Last {
				v.Last, newest = slot, o.ModTime
			}
			if o.Size != FenceSize {
				v.Data = max(v.Data, slot)
				v.Span = newest.Sub(o.ModTime)
			}
		}
		if listed++; listed == pageSize {
			break
		}
	}
	if listed < pageSize || v.Data > 0 {
		return v, nil
	}
	e, err := s.entry(ctx, v, v.Last) // that fence tells where the data is
	if err == nil && e.newest > 0 {
		v.Data = e.newest
		_, err = s.Data(ctx, v, v.Data)
	}
	return v, err
}

// readLast is Tail without the data: it is one LIST.
func (s *Sequence) readLast(ctx context.Context) (*TailView, error) {
	v := &TailView{sizes: map[uint64]int{}, read: map[uint64]Entry{}}
	for o, err := range s.store.List(ctx, s.prefix, "") {
		if err != nil {
			return nil, fmt.Errorf("siftkv: list %s: %w", s.prefix, err)
		}
		if slot, ok := s.SlotOf(o.Key); ok {
			v.Last = slot
			break
		}
	}
	return v, nil
}

// TailBefore returns a view that ends with the newest data that was put a grace before now, and when that was. The time
// is that of the store's clock. If now is zero, it is the time of the newest entry. Data is 0 if there is none.
//
// It is a LIST of the entries since then.
func (s *Sequence) TailBefore(ctx context.Context, now time.Time, grace time.Duration) (*TailView, time.Time, error) {
	v := &TailView{sizes: map[uint64]int{}, read: map[uint64]Entry{}}
	for o, err := range s.store.List(ctx, s.prefix, "") {
		if err != nil {
			return nil, now, fmt.Errorf("siftkv: list %s: %w", s.prefix, err)
		}
		slot, ok := s.SlotOf(o.Key)
		if !ok {
			continue
		}
		if now.IsZero() {
			now = o.ModTime
		}
		if o.Size != FenceSize && !o.ModTime.After(now.Add(-grace)) {
			v.Last, v.Data, v.sizes[slot] = slot, slot, int(min(o.Size, maxSize))
			break
		}
	}
	return v, now.Add(-grace), nil
}

// entry returns the entry in a slot, which is read once.
func (s *Sequence) entry(ctx context.Context, v *TailView, slot uint64) (Entry, error) {
	if e, ok := v.read[slot]; ok {
		return e, nil
	}
	e, _, err := s.get(ctx, slot, v.sizeOf(slot))
	if err == nil {
		v.read[slot] = e
	}
	return e, err
}

// Data is entry of a slot that had data. If a stalled writer's fence is there, the data was trimmed: the error is that
// of a missing object.
func (s *Sequence) Data(ctx context.Context, v *TailView, slot uint64) (Entry, error) {
	e, err := s.entry(ctx, v, slot)
	if err == nil && e.Fence {
		err = s.fenced(slot)
	}
	return e, err
}

// fenced is the error of a slot with a fence, where data was.
func (s *Sequence) fenced(slot uint64) error {
	return &objstore.Error{Op: objstore.Get, Key: s.Key(slot),
		Err: fmt.Errorf("%w: a fence is there, where data was", objstore.ErrNotExist)}
}

// sizeOf returns the size of the object in a slot; a guess if it is not in the page.
func (v *TailView) sizeOf(slot uint64) int {
	if size := v.sizes[slot]; size > 0 {
		return size
	}
	return guess
}

// add notes an entry that follows what was listed.
func (v *TailView) add(e Entry) {
	v.read[e.Slot], v.Last = e, e.Slot
	if !e.Fence {
		v.Data = e.Slot
	}
}

// Newest returns the newest data; its Slot is 0 if there is none. It is a Tail, and a GET if there is data.
func (s *Sequence) Newest(ctx context.Context) (e Entry, err error) {
	err = s.Retry(func() error {
		v, err := s.Tail(ctx)
		if err == nil && v.Data > 0 {
			e, err = s.Data(ctx, v, v.Data)
		}
		return err
	})
	return e, err
}

// Retry repeats do, which begins with a Tail, while do finds that entries were trimmed meanwhile. It goes on as long as
// a Tail shows newer data, and for a few more tries, as listings may lag.
func (s *Sequence) Retry(do func() error) error {
	const tries = 4
	newest := uint64(0)
	for try := 1; ; try++ {
		err := do()
		if !IsMissing(err) && !errors.Is(err, ErrMoved) {
			return err
		}
		if data := s.tailData.Load(); data > newest {
			newest, try = data, 1
		}
		if try == tries {
			return err
		}
	}
}
