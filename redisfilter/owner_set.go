package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/window"
)

// An OwnerSet is the set of one owner over the last windows. It is for any number of goroutines. Keys and slices
// of answers are as those of a Set.
type OwnerSet struct {
	windows *Windows
	owner   string
}

// Add adds a key, in one trip. It is remembered for at least Keep-1 periods from then on, whether it
// was there or not.
func (s *OwnerSet) Add(ctx context.Context, key []byte) error { return s.MAdd(ctx, [][]byte{key}) }

// AddNew adds a key unless it is there, and reports whether it was new, in one trip. Of any number of
// processes that add a key at the same time exactly one is told so, at a change of windows too. A key that
// is there is left as it is: AddNew does not make it be remembered longer. A new key is taken for an old one
// at the rate of false positives, and whenever there is an error.
func (s *OwnerSet) AddNew(ctx context.Context, key []byte) (bool, error) {
	fresh, err := s.MAddNew(ctx, [][]byte{key})
	return fresh[0], err
}

// Contains reports whether a key may have been added in the last Keep windows, in one trip. It says
// (true, err) when it cannot know; and false when it was forgotten by a loss.
func (s *OwnerSet) Contains(ctx context.Context, key []byte) (bool, error) {
	maybe, err := s.MContains(ctx, [][]byte{key})
	return maybe[0], err
}

// MAdd is Add for many keys, in one trip, and one more each time that the window grows.
func (s *OwnerSet) MAdd(ctx context.Context, keys [][]byte) error {
	ctx, cancel := s.windows.deadline(ctx)
	defer cancel()
	op, err := s.begin(ctx)
	if err != nil {
		return err
	}
	at := op.Span(op.earliest, op.latest, 0)
	at.First, at.Last = at.Add, at.Add // a window that ends sooner does not count
	_, err = op.insertNew(ctx, op.seatsOf(keys, at), 0, at.Life)
	return op.client.wrap(op.name, err)
}

// MAddNew is AddNew for many keys, in one trip, and one more each time that the window grows. Answers
// that are true are certain, with an error too.
func (s *OwnerSet) MAddNew(ctx context.Context, keys [][]byte) ([]bool, error) {
	ctx, cancel := s.windows.deadline(ctx)
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
	return fresh, op.client.wrap(op.name, err)
}

// MContains is Contains for many keys, in one trip. Answers that are false count, with an error too.
func (s *OwnerSet) MContains(ctx context.Context, keys [][]byte) ([]bool, error) {
	ctx, cancel := s.windows.deadline(ctx)
	defer cancel()
	maybe := slices.Repeat([]bool{true}, len(keys))
	op, err := s.begin(ctx)
	if err != nil {
		return maybe, err
	}
	err = op.ask(ctx, op.seatsOf(keys, op.Span(op.earliest, op.latest, 0)), maybe)
	return maybe, op.client.wrap(op.name, err)
}

// A windowOp is what an operation on an owner's windows knows when it begins.
type windowOp struct {
	*owners
	window.Calendar
	clock            *window.Clock
	owner            string
	generation       string
	earliest, latest time.Time // bounds of the server's time
}

// begin returns what an operation needs, or says why there can be none.
func (s *OwnerSet) begin(ctx context.Context) (*windowOp, error) {
	w := s.windows
	if s.owner == "" || len(s.owner) > maxOwner {
		return nil, fmt.Errorf("redisfilter: set %q: an owner has 1 to %d bytes, not %d",
			w.name, maxOwner, len(s.owner))
	}
	v, err := w.current()
	if err != nil {
		return nil, w.client.wrap(w.name, err)
	}
	op := &windowOp{
		owners: v.content.(*owners), Calendar: w.calendar, clock: w.clock, owner: s.owner, generation: v.cfg.Generation,
	}
	if err := w.client.watch.Away(slotOf(op.prefix(s.owner, "", 0))); err != nil {
		return nil, w.client.wrap(w.name, w.client.unavailable(err))
	}
	op.earliest, op.latest, err = w.clock.Bounds(ctx)
	return op, w.client.wrap(w.name, err)
}

// seatsOf returns where each key is in the windows of a span.
func (op *windowOp) seatsOf(keys [][]byte, at window.Span) [][]seat {
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = op.hash(key)
	}
	seats := op.seats(op.owner, op.generation, at.First, at.Last, hashes)
	return slices.Collect(slices.Chunk(seats, at.Len()))
}

// late returns an error if the server may have executed the operation in a window that was not asked.
func (op *windowOp) late(at window.Span) error {
	if op.Number(op.clock.Latest()) > at.Last {
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
			at := slices.Index(answers[:n], layout.Lost)
			maybe[k] = at >= 0 || slices.Contains(answers[:n], layout.Present)
			if at >= 0 && !slices.Contains(answers[:n], layout.Present) {
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

// An OwnerInfo describes what Redis holds of an owner in the windows that are asked.
type OwnerInfo struct {
	Owner   string
	Windows int   // that hold keys
	Keys    int   // an estimate, from the bits that are set; a key counts in each window that it was added to
	Layers  int   // of the window that has most
	Shards  int   // values in Redis
	Bytes   int64 // of the values; Redis adds some 100 bytes to each

	// FalsePositiveRate is the probability that Contains says true for a key that was not added, as theory
	// gives it for the estimates of keys.
	FalsePositiveRate float64
}

// Info tells what Redis holds of the owner. It takes a trip, and one more for each layer that a window
// has beside its first.
func (s *OwnerSet) Info(ctx context.Context) (OwnerInfo, error) {
	ctx, cancel := s.windows.deadline(ctx)
	defer cancel()
	info := OwnerInfo{Owner: s.owner}
	op, err := s.begin(ctx)
	if err != nil {
		return info, err
	}
	return info, op.client.wrap(op.name, op.survey(ctx, info.add))
}

// add counts a shard.
func (i *OwnerInfo) add(s shardState, shape layout.Layer) {
	keys := min(shape.KeysOf(s.ones), maxKeys)
	i.Keys += int(math.Round(keys))
	i.Shards++
	i.Bytes += int64(shape.Len())
	i.Layers = max(i.Layers, s.layer+1)
	i.FalsePositiveRate += blocked.Rate(keys, shape.Lines, shape.Probes) / float64(shape.Shards)
	if s.layer == 0 {
		i.Windows++
	}
}

// survey calls f with each shard of the owner that there is.
func (op *windowOp) survey(ctx context.Context, f func(shardState, layout.Layer)) error {
	there := func(s shardState) error {
		switch {
		case s.err != nil:
			return s.err
		case s.whole:
			f(s, op.layers[s.layer])
		case s.length != 0:
			return fmt.Errorf("%w: %s is not whole", ErrForeign, s.key)
		}
		return nil
	}
	layers, err := op.grown(ctx)
	for prefix, n := range layers {
		for layer := range n {
			err = errors.Join(err, op.surveyLayer(ctx, prefix, layer, true, there))
		}
	}
	return err
}

// grown returns how many layers each window has, by its prefix.
func (op *windowOp) grown(ctx context.Context) (map[string]int, error) {
	at := op.Span(op.earliest, op.latest, op.Period)
	var prefixes []string
	var cmds []redis.Cmder
	for number := at.First; number <= at.Last; number++ {
		prefix := op.prefix(op.owner, op.generation, number)
		prefixes = append(prefixes, prefix)
		cmds = append(cmds, getHeader(ctx, prefix))
	}
	op.client.run(ctx, cmds...)
	layers := map[string]int{}
	for i, prefix := range prefixes {
		header, err := cmds[i].(*redis.StringCmd).Bytes()
		switch {
		case err != nil:
			return nil, foreign(err, layout.ShardKey(prefix, 0, 0), nil)
		case len(header) == 0:
		case !op.layers[0].Owns(keyAsked(cmds[i]), header):
			return nil, fmt.Errorf("%w: %s begins with %q", ErrForeign, keyAsked(cmds[i]), header)
		default:
			layers[prefix] = layout.LayersOf(header, len(op.layers))
		}
	}
	return layers, nil
}

// Drop forgets all keys of the owner. What other processes add at the same time may remain.
func (s *OwnerSet) Drop(ctx context.Context) error {
	ctx, cancel := s.windows.deadline(ctx)
	defer cancel()
	op, err := s.begin(ctx)
	if err != nil {
		return err
	}
	layers, err := op.grown(ctx)
	if err != nil {
		return op.client.wrap(op.name, err)
	}
	var cmds []redis.Cmder
	for prefix, n := range layers {
		for layer := range n {
			for shard := range op.layers[layer].Shards {
				cmds = append(cmds, redis.NewIntCmd(ctx, "unlink", layout.ShardKey(prefix, layer, shard)))
			}
		}
	}
	op.client.run(ctx, cmds...)
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			return op.client.wrap(op.name, err)
		}
	}
	return nil
}
