package compare

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// A hole says which of the loaded keys are deleted: of every period keys in order, those
// from one on up to another. The zero value has none.
type hole struct{ period, from, to int }

// Holes that jobs make: nine keys of ten, by a tombstone each, and ten of twenty, by a
// range tombstone for these ten.
var (
	pointHole = hole{10, 1, 10}
	rangeHole = hole{20, 0, 10}
)

func (h hole) has(rank int) bool {
	return h.period > 0 && rank%h.period >= h.from && rank%h.period < h.to
}

func (h hole) rank(i int) int { return i/(h.to-h.from)*h.period + h.from + i%(h.to-h.from) }

// count returns how many of n keys are deleted, at least. A period that is cut short does
// not count.
func (h hole) count(n int) int { return n / h.period * (h.to - h.from) }

// each does n operations, timed together.
func (w *worker) each(ctx context.Context, n int, do func(i int) error) (*Sample, error) {
	s, err := w.timed(func() error {
		for i := range n {
			if i%chunkKeys == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.of(n), nil
}

// sum notes the sum of the words that the records have now.
func (w *worker) sum(word func(key []byte, record int) uint64) {
	var key []byte
	w.checksum = 0
	for i := range w.keyspace.n {
		key = w.keyspace.source.AppendPresent(key[:0], i)
		w.checksum += word(key, i)
	}
}

// rounds returns what draws the record of write i: every record once in random order, and then again.
func (u *keyspace) rounds() func(i int) int {
	var order keys.Permutation
	return func(i int) int {
		if i%u.n == 0 {
			order = u.writeOrder(i / u.n)
		}
		return order.At(i % u.n)
	}
}

func (w *worker) overwrite(ctx context.Context, j *job) (*Sample, error) {
	u := w.keyspace
	var key, value []byte
	record := u.rounds()
	s, err := w.each(ctx, j.Lookups, func(i int) error {
		key = u.source.AppendPresent(key[:0], record(i))
		value = u.updated.Append(value[:0], key)
		return w.store.Put(key, value)
	})
	w.sum(func(key []byte, _ int) uint64 { return u.updated.Word(key) })
	return s, err
}

// writeOrder returns the order in which all records are written once more.
func (u *keyspace) writeOrder(round int) keys.Permutation {
	return keys.NewPermutation(u.n, keys.Mix(u.seed^writeOrder)+uint64(round))
}

// of makes the sample one of a number of operations.
func (s *Sample) of(operations int) *Sample {
	s.Operations, s.PerSecond = int64(operations), float64(operations)/s.Seconds
	return s
}

func (w *worker) deletePoints(ctx context.Context) (*Sample, error) {
	var key []byte
	return w.dig(ctx, pointHole, pointHole.count(w.keyspace.n), func(i int) error {
		key = w.keyspace.source.AppendInOrder(key[:0], pointHole.rank(i))
		return w.store.Delete(key)
	})
}

func (w *worker) deleteRanges(ctx context.Context) (*Sample, error) {
	store, ok := w.store.(engine.RangeDeleter)
	if !ok {
		return nil, fmt.Errorf("%s has no range tombstones", w.start.Engine)
	}
	var start, end []byte
	return w.dig(ctx, rangeHole, w.keyspace.n/rangeHole.period, func(i int) error {
		first := i * rangeHole.period
		start = w.keyspace.source.AppendInOrder(start[:0], first+rangeHole.from)
		end = w.keyspace.source.AppendInOrder(end[:0], first+rangeHole.to)
		return store.DeleteRange(start, end)
	})
}

// dig makes a hole by n deletes, in random order.
func (w *worker) dig(ctx context.Context, h hole, n int, remove func(i int) error) (*Sample, error) {
	order := keys.NewPermutation(n, keys.Mix(w.keyspace.seed^writeOrder))
	s, err := w.each(ctx, n, func(i int) error { return remove(order.At(i)) })
	w.hole = h
	return s, err
}

func (u *keyspace) gone(h hole, pass uint64) drawing {
	return u.cycle(h.count(u.n), absentOrder, pass, func(c *chunk, number int) {
		c.keys, c.words = u.source.AppendInOrder(c.keys, h.rank(number)), append(c.words, 0)
	})
}

// add makes j.Lookups additions: to every counter in random order, and then again. It uses the
// store's merge operator, or where there is none a lookup and a write.
func (w *worker) add(ctx context.Context, j *job) (*Sample, error) {
	add, finish, err := w.adder()
	if err != nil {
		return nil, err
	}
	u := w.keyspace
	w.totals = make([]uint64, u.n)
	var key, counter []byte
	record := u.rounds()
	return w.each(ctx, j.Lookups, func(i int) error {
		to := record(i)
		key = u.source.AppendPresent(key[:0], to)
		counter = binary.LittleEndian.AppendUint64(counter[:0], uint64(i))
		w.totals[to] += uint64(i)
		if err := add(key, counter); err != nil || i < j.Lookups-1 {
			return err
		}
		return finish()
	})
}

// adder returns what adds a counter to that of a key, and what is to be called when all is
// added.
func (w *worker) adder() (add func(key, counter []byte) error, finish func() error, err error) {
	if store, ok := w.store.(engine.Adder); ok {
		return store.Add, func() error { return nil }, nil
	}
	r, err := w.store.NewReader(engine.Get, engine.Existing)
	if err != nil {
		return nil, nil, err
	}
	var dst []byte
	add = func(key, counter []byte) error {
		value, found, err := r.Get(dst[:0], key)
		if err != nil {
			return err
		}
		dst = value
		if !found {
			return w.store.Set(key, counter)
		}
		if len(value) != 8 {
			return wrongLookup(engine.Existing, key, value, found)
		}
		sum := binary.LittleEndian.Uint64(value) + binary.LittleEndian.Uint64(counter)
		return w.store.Set(key, binary.LittleEndian.AppendUint64(dst[:0], sum))
	}
	return add, r.Close, nil
}

// counters draws counters in random order, with what they were brought to.
func (w *worker) counters(pass uint64) drawing {
	return w.keyspace.cycle(w.keyspace.n, existingOrder, pass, func(c *chunk, record int) {
		c.keys, c.words = w.keyspace.source.AppendPresent(c.keys, record), append(c.words, w.totals[record])
	})
}

func isCounter(_, value []byte, sum uint64) bool {
	return len(value) == 8 && binary.LittleEndian.Uint64(value) == sum
}

// replaceChunk is the number of records that are replaced between two readings of the clock.
const replaceChunk = 64

// replace overwrites records that are drawn at random, any at any time, in batches: a number
// of them, or for a time. Each time a record gets another value, so that no older one is taken for it.
func (w *worker) replace(ctx context.Context, j *job) (*Sample, error) {
	u := w.keyspace
	if w.versions == nil {
		w.versions = make([]uint32, u.n)
	}
	w.replaced++ // another draw than that of the last call
	draw := keys.NewRandom(u.seed^replaceDraw, w.replaced)
	limit, done := time.Duration(j.Seconds*float64(time.Second)), 0
	s, err := w.timed(func() error {
		var key, value []byte
		for begun := time.Now(); j.Lookups > 0 && done < j.Lookups || j.Lookups == 0 && time.Since(begun) < limit; {
			n := replaceChunk
			if j.Lookups > 0 {
				n = min(n, j.Lookups-done)
			}
			for range n {
				record := min(int(draw.Float()*float64(u.n)), u.n-1)
				w.versions[record]++
				key = u.source.AppendPresent(key[:0], record)
				value = u.updated.Append(value[:0], w.version(key, record))
				if err := w.store.Put(key, value); err != nil {
					return err
				}
			}
			if done += n; ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.sum(w.word)
	return s.of(done), nil
}

// version returns a key with the number of times that its record was replaced: the updated value
// of that is the record's. It is valid until the next call with the room behind the key.
func (w *worker) version(key []byte, record int) []byte {
	return binary.LittleEndian.AppendUint32(key, w.versions[record])
}

// word returns the first word of a record's value as it is now.
func (w *worker) word(key []byte, record int) uint64 {
	if w.versions == nil || w.versions[record] == 0 {
		return w.keyspace.loaded.Word(key)
	}
	return w.keyspace.updated.Word(w.version(key, record))
}

// newest is keyspace.existing with the values that records were replaced by.
func (w *worker) newest(pass uint64) drawing {
	var key []byte
	return w.keyspace.cycle(w.keyspace.n, existingOrder, pass, func(c *chunk, record int) {
		key = w.keyspace.source.AppendPresent(key[:0], record)
		c.keys, c.words = append(c.keys, key...), append(c.words, w.word(key, record))
	})
}

// keyScans is a loop of scans of all keys, without values.
type keyScans struct {
	w     *worker
	store engine.KeyScanner
	sum   uint64 // of the keys' positions
}

func newKeyScans(w *worker) (*keyScans, error) {
	store, ok := w.store.(engine.KeyScanner)
	if !ok {
		return nil, fmt.Errorf("%s has no scans of keys", w.start.Engine)
	}
	k := &keyScans{w: w, store: store}
	var key []byte
	for i := range w.keyspace.n {
		key = w.keyspace.source.AppendPresent(key[:0], i)
		k.sum += position(key)
	}
	return k, nil
}

func (k *keyScans) close() error { return nil }

func (k *keyScans) draw() (int, error) { return k.w.keyspace.n, nil }

// do scans all keys. Their number, order and sum say that each is there, once.
func (k *keyScans) do() error {
	n, sum, previous, disorder := 0, uint64(0), uint64(0), false
	err := k.store.ScanKeys(nil, 0, func(key []byte) {
		p := position(key)
		disorder = disorder || n > 0 && p <= previous
		previous = p
		sum += p
		n++
	})
	if err != nil {
		return err
	}
	if n != k.w.keyspace.n || sum != k.sum || disorder {
		return &measure.WrongAnswer{Kind: engine.Existing, Key: []byte{},
			What: fmt.Sprintf("a scan of keys from here: %d of %d, in order: %t, right sum: %t", n, k.w.keyspace.n,
				!disorder, sum == k.sum)}
	}
	return nil
}
