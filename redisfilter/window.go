package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Window is the windows of one owner. It is for any number of goroutines. Keys and slices of answers
// are as those of a Set.
type Window struct {
	windows *Windows
	owner   string
}

// Add adds a key, in one trip. It is remembered for at least Keep-1 periods from then on, whether it
// was there or not.
func (f *Window) Add(ctx context.Context, key []byte) error { return f.MAdd(ctx, [][]byte{key}) }

// AddNew adds a key unless it is there, and reports whether it was new, in one trip. Of any number of
// processes that add a key at the same time exactly one is told so, at a change of windows too. A key that
// is there is left as it is: AddNew does not make it be remembered longer. A new key is taken for an old one
// at the rate of false positives, and whenever there is an error.
func (f *Window) AddNew(ctx context.Context, key []byte) (bool, error) {
	fresh, err := f.MAddNew(ctx, [][]byte{key})
	return fresh[0], err
}

// Contains reports whether a key may have been added in the last Keep windows, in one trip. It says
// (true, err) when it cannot know; and false when it was forgotten by a loss.
func (f *Window) Contains(ctx context.Context, key []byte) (bool, error) {
	maybe, err := f.MContains(ctx, [][]byte{key})
	return maybe[0], err
}

// MAdd is Add for many keys, in one trip, and one more each time that the window grows.
func (f *Window) MAdd(ctx context.Context, keys [][]byte) error {
	ctx, cancel := f.windows.deadline(ctx)
	defer cancel()
	op, err := f.begin(ctx)
	if err != nil {
		return err
	}
	at := op.span(op.earliest, op.latest, 0)
	at.first, at.last = at.add, at.add // a window that ends sooner does not count
	_, err = op.insertNew(ctx, op.seatsOf(keys, at), 0, at.life)
	return op.client.wrap(op.name, err)
}

// MAddNew is AddNew for many keys, in one trip, and one more each time that the window grows. Answers
// that are true are certain, with an error too.
func (f *Window) MAddNew(ctx context.Context, keys [][]byte) ([]bool, error) {
	ctx, cancel := f.windows.deadline(ctx)
	defer cancel()
	op, err := f.begin(ctx)
	if err != nil {
		return make([]bool, len(keys)), err
	}
	// Another process may add to the next window before this is executed.
	left := op.period
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	at := op.span(op.earliest, op.latest, left)
	fresh, err := op.insertNew(ctx, op.seatsOf(keys, at), int(at.add-at.first), at.life)
	if late := op.late(at); late != nil {
		clear(fresh)
		err = errors.Join(err, late)
	}
	return fresh, op.client.wrap(op.name, err)
}

// MContains is Contains for many keys, in one trip. Answers that are false count, with an error too.
func (f *Window) MContains(ctx context.Context, keys [][]byte) ([]bool, error) {
	ctx, cancel := f.windows.deadline(ctx)
	defer cancel()
	maybe := slices.Repeat([]bool{true}, len(keys))
	op, err := f.begin(ctx)
	if err != nil {
		return maybe, err
	}
	err = op.ask(ctx, op.seatsOf(keys, op.span(op.earliest, op.latest, 0)), maybe)
	return maybe, op.client.wrap(op.name, err)
}

// A windowOp is what an operation on an owner's windows knows when it begins.
type windowOp struct {
	*owners
	calendar
	clock            *serverClock
	owner            string
	generation       string
	earliest, latest time.Time // bounds of the server's time
}

// begin returns what an operation needs, or says why there can be none.
func (f *Window) begin(ctx context.Context) (*windowOp, error) {
	w := f.windows
	if f.owner == "" || len(f.owner) > maxOwner {
		return nil, fmt.Errorf("redisfilter: set %q: an owner has 1 to %d bytes, not %d",
			w.name, maxOwner, len(f.owner))
	}
	v, err := w.current()
	if err != nil {
		return nil, w.client.wrap(w.name, err)
	}
	op := &windowOp{
		owners: v.content.(*owners), calendar: w.calendar, clock: w.clock, owner: f.owner, generation: v.cfg.Generation,
	}
	if err := w.client.watch.Away(slotOf(op.prefix(f.owner, "", 0))); err != nil {
		return nil, w.client.wrap(w.name, w.client.unavailable(err))
	}
	op.earliest, op.latest, err = w.clock.bounds(ctx)
	return op, w.client.wrap(w.name, err)
}

// seatsOf returns where each key is in the windows of a span.
func (op *windowOp) seatsOf(keys [][]byte, at span) [][]seat {
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = op.hash(key)
	}
	seats := op.seats(op.owner, op.generation, at.first, at.last, hashes)
	return slices.Collect(slices.Chunk(seats, at.windows()))
}

// late returns an error if the server may have executed the operation in a window that was not asked.
func (op *windowOp) late(at span) error {
	if _, latest := op.clock.last.Load().bounds(op.clock.now()); op.number(latest) > at.last {
		return fmt.Errorf("%w: the answer took longer than a window", ErrUnavailable)
	}
	return nil
}

// ask clears the maybes of keys that no window has. A value that is made while it is read looks like
// one that is not ours; what looks so twice is not.
func (op *windowOp) ask(ctx context.Context, keys [][]seat, maybe []bool) error {
	todo := make([]int, len(keys))
	for i := range todo {
		todo[i] = i
	}
	prefix := ""
	for range 2 {
		var seats []seat
		for _, k := range todo {
			seats = append(seats, keys[k]...)
		}
		answers, err := op.lookup(ctx, seats)
		var unclear []int
		for _, k := range todo {
			n := len(keys[k])
			at := slices.Index(answers[:n], lost)
			maybe[k] = at >= 0 || slices.Contains(answers[:n], present)
			if at >= 0 && !slices.Contains(answers[:n], present) {
				unclear, prefix = append(unclear, k), keys[k][at].prefix
			}
			answers = answers[n:]
		}
		if err != nil || len(unclear) == 0 {
			return err
		}
		todo = unclear
	}
	return fmt.Errorf("%w: a value of %s is too short, or is not whole", ErrForeign, prefix)
}
