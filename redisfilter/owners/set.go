package owners

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/chain"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// A Set is the set of one owner over the last windows. It is for any number of goroutines. Keys and slices of
// answers are as those of a redisfilter.Set.
type Set struct {
	sets  *Sets
	owner string
}

// Add adds a key, in one trip. It is remembered for at least Keep-1 periods from then on, whether it was there or
// not.
func (s *Set) Add(ctx context.Context, key []byte) error { return s.MAdd(ctx, [][]byte{key}) }

// AddNew adds a key unless it is there, and reports whether it was new, in one trip. Of any number of processes that
// add a key at the same time exactly one is told so, at a change of windows too. A key that is there is left as it
// is: AddNew does not make it be remembered longer. A new key is taken for an old one at the rate of false positives,
// and whenever there is an error.
func (s *Set) AddNew(ctx context.Context, key []byte) (bool, error) {
	fresh, err := s.MAddNew(ctx, [][]byte{key})
	return fresh[0], err
}

// Contains reports whether a key may have been added in the last Keep windows, in one trip. It says (true, err) when
// it cannot know; and false when it was forgotten by a loss.
func (s *Set) Contains(ctx context.Context, key []byte) (bool, error) {
	maybe, err := s.MContains(ctx, [][]byte{key})
	return maybe[0], err
}

// MAdd is Add for many keys, in one trip, and one more each time that the window grows.
func (s *Set) MAdd(ctx context.Context, keys [][]byte) error {
	ctx, cancel := s.sets.deadline(ctx)
	defer cancel()
	op, err := s.begin(ctx)
	if err != nil {
		return err
	}
	at := op.Span(op.earliest, op.latest, 0)
	at.First, at.Last = at.Add, at.Add // a window that ends sooner does not count
	_, err = op.insertNew(ctx, op.seatsOf(keys, at), 0, at.Life)
	return op.wrap(err)
}

// MAddNew is AddNew for many keys, in one trip, and one more each time that the window grows. Answers that are true
// are certain, with an error too.
func (s *Set) MAddNew(ctx context.Context, keys [][]byte) ([]bool, error) {
	ctx, cancel := s.sets.deadline(ctx)
	defer cancel()
	op, err := s.begin(ctx)
	if err != nil {
		return make([]bool, len(keys)), err
	}
	// Another process may add to the next window before this is executed.
	left := op.Period
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	at := op.Span(op.earliest, op.latest, left)
	fresh, err := op.insertNew(ctx, op.seatsOf(keys, at), int(at.Add-at.First), at.Life)
	if late := op.late(at); late != nil {
		clear(fresh)
		err = errors.Join(err, late)
	}
	return fresh, op.wrap(err)
}

// MContains is Contains for many keys, in one trip. Answers that are false count, with an error too.
func (s *Set) MContains(ctx context.Context, keys [][]byte) ([]bool, error) {
	ctx, cancel := s.sets.deadline(ctx)
	defer cancel()
	maybe := slices.Repeat([]bool{true}, len(keys))
	op, err := s.begin(ctx)
	if err != nil {
		return maybe, err
	}
	err = op.ask(ctx, op.seatsOf(keys, op.Span(op.earliest, op.latest, 0)), maybe)
	return maybe, op.wrap(err)
}

// An operation is what an operation on an owner's windows knows when it begins.
type operation struct {
	*windows
	calendar
	clock            *clock
	owner            string
	generation       string
	earliest, latest time.Time // bounds of the server's time
}

// begin returns what an operation needs, or says why there can be none.
func (s *Set) begin(ctx context.Context) (*operation, error) {
	all := s.sets
	if s.owner == "" || len(s.owner) > maxOwner {
		return nil, fmt.Errorf("redisfilter: set %q: an owner has 1 to %d bytes, not %d",
			all.stored.Name, maxOwner, len(s.owner))
	}
	now, err := all.now()
	if err != nil {
		return nil, all.wrap(err)
	}
	op := &operation{
		windows: now.windows, calendar: all.calendar, clock: all.clock, owner: s.owner, generation: now.cfg.Generation,
	}
	if err := op.Conn.Watch.Away(nodes.Slot(op.prefix(s.owner, "", 0))); err != nil {
		return nil, all.wrap(op.Conn.Unavailable(err))
	}
	op.earliest, op.latest, err = all.clock.Bounds(ctx)
	return op, all.wrap(err)
}

func (w *windows) wrap(err error) error { return w.Conn.Wrap(w.name, err) }

// seatsOf returns where each key is in the windows of a span.
func (op *operation) seatsOf(keys [][]byte, at span) [][]chain.Seat {
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = op.Hash(key)
	}
	seats := op.seats(op.owner, op.generation, at.First, at.Last, hashes)
	return slices.Collect(slices.Chunk(seats, at.Len()))
}

// late returns an error if the server may have executed the operation in a window that was not asked.
func (op *operation) late(at span) error {
	if op.Number(op.clock.Latest()) > at.Last {
		return fmt.Errorf("%w: the answer took longer than a window", conn.ErrUnavailable)
	}
	return nil
}

// ask clears the maybes of keys that no window has. A value that is made while it is read looks like one that is not
// ours; what looks so twice is not.
func (op *operation) ask(ctx context.Context, keys [][]chain.Seat, maybe []bool) error {
	todo := make([]int, len(keys))
	for i := range todo {
		todo[i] = i
	}
	prefix := ""
	for range 2 {
		var seats []chain.Seat
		for _, k := range todo {
			seats = append(seats, keys[k]...)
		}
		answers, err := op.Lookup(ctx, seats)
		var unclear []int
		for _, k := range todo {
			n := len(keys[k])
			at := slices.Index(answers[:n], layout.Lost)
			maybe[k] = at >= 0 || slices.Contains(answers[:n], layout.Present)
			if at >= 0 && !slices.Contains(answers[:n], layout.Present) {
				unclear, prefix = append(unclear, k), keys[k][at].Prefix
			}
			answers = answers[n:]
		}
		if err != nil || len(unclear) == 0 {
			return err
		}
		todo = unclear
	}
	return fmt.Errorf("%w: a value of %s is too short, or is not whole", conn.ErrForeign, prefix)
}

// An Info describes what Redis holds of an owner in the windows that are asked.
type Info struct {
	Owner   string
	Windows int   // that hold keys
	Keys    int   // an estimate, from the bits that are set; a key counts in each window that it was added to
	Layers  int   // of the window that has most
	Shards  int   // values in Redis
	Bytes   int64 // of the values; Redis adds some 100 bytes to each

	// FalsePositiveRate is the probability that Contains says true for a key that was not added, as theory gives it
	// for the estimates of keys.
	FalsePositiveRate float64
}

// Info tells what Redis holds of the owner. It takes two trips, and more for an owner of more than 256 values.
func (s *Set) Info(ctx context.Context) (Info, error) {
	ctx, cancel := s.sets.deadline(ctx)
	defer cancel()
	info := Info{Owner: s.owner}
	op, err := s.begin(ctx)
	if err != nil {
		return info, err
	}
	return info, op.wrap(op.Survey(ctx, op.prefixes(), true, info.add))
}

// add counts a shard if it is there: a layer is, before its shards are.
func (i *Info) add(s chain.State) error {
	switch {
	case s.Err != nil:
		return s.Err
	case s.Len == 0:
		return nil
	case !s.Whole:
		return fmt.Errorf("%w: %s is not whole", conn.ErrForeign, s.Key)
	}
	keys := s.Shape.KeysOf(s.Ones)
	i.Keys += int(math.Round(keys))
	i.Shards++
	i.Bytes += int64(s.Shape.Len())
	i.Layers = max(i.Layers, s.Layer+1)
	i.FalsePositiveRate += blocked.Rate(keys, s.Shape.Lines, s.Shape.Probes) / float64(s.Shape.Shards)
	if s.Layer == 0 {
		i.Windows++
	}
	return nil
}

// prefixes are how the keys of the windows begin that may hold keys of the owner.
func (op *operation) prefixes() (all []string) {
	at := op.Span(op.earliest, op.latest, op.Period)
	for number := at.First; number <= at.Last; number++ {
		all = append(all, op.prefix(op.owner, op.generation, number))
	}
	return all
}

// Drop forgets all keys of the owner. What other processes add at the same time may remain.
func (s *Set) Drop(ctx context.Context) error {
	ctx, cancel := s.sets.deadline(ctx)
	defer cancel()
	op, err := s.begin(ctx)
	if err != nil {
		return err
	}
	return op.wrap(op.Remove(ctx, op.prefixes()))
}
