package compare

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// load writes all records in load order and notes the sum of their words.
func (w *worker) load(ctx context.Context) (*Sample, error) {
	u := w.keyspace
	w.checksum = 0
	var key, value []byte
	return w.each(ctx, u.n, func(i int) error {
		key = u.source.AppendPresent(key[:0], i)
		value = u.loaded.Append(value[:0], key)
		w.checksum += binary.LittleEndian.Uint64(value)
		return w.store.Put(key, value)
	})
}

// warm looks up a key of every block, in key order, so that a cache that is large
// enough has them all.
func (w *worker) warm(ctx context.Context) (*Sample, error) {
	entry := w.keyspace.keySize + w.start.ValueSize
	step := max(1, w.settings.BlockBytes/(4*entry))
	r, err := w.store.NewReader(engine.Get, engine.Existing)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	loop := lookups{reader: r, right: w.keyspace.hasWord, kind: engine.Existing, next: w.keyspace.inOrder(step),
		chunk: newChunk(w.keyspace)}
	return w.timed(func() error {
		_, err := runLoop(ctx, &loop, math.MaxInt64)
		return err
	})
}

// A loop does something a chunk at a time.
type loop interface {
	draw() (operations int, err error) // chooses a chunk, off the clock; none: nothing is left
	do() error                         // does it
	close() error
}

// A total is what a loop has done, and the time that it took.
type total struct {
	operations int
	wall, cpu  time.Duration // cpu is of the whole process
}

// runLoop does chunks until they have taken some time.
func runLoop(ctx context.Context, l loop, limit time.Duration) (t total, err error) {
	for t.operations == 0 || t.wall < limit {
		n, err := l.draw()
		if n == 0 || err != nil {
			return t, err
		}
		cpu, start := processorTime(), time.Now()
		if err := l.do(); err != nil {
			return t, err
		}
		t.wall += time.Since(start)
		t.cpu += processorTime() - cpu
		t.operations += n
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
	}
	return t, nil
}

func (w *worker) newLoop(j *job, thread int) (loop, error) {
	u, pass := w.keyspace, j.Pass*16+uint64(thread)
	switch {
	case j.Kind == "scan":
		return newScans(w, j.Limit, pass), nil
	case j.Kind == "scan-keys":
		return newKeyScans(w)
	case j.Kind == "set":
		return newSets(w, pass), nil
	case strings.HasPrefix(j.Kind, "ycsb-"):
		return newYCSB(w, j.Kind, pass)
	}
	l := &lookups{right: u.hasWord, kind: engine.Existing, chunk: newChunk(u)}
	switch j.Kind {
	case "existing":
		l.next = u.existing(existingOrder, pass)
	case "replaced":
		l.next = w.newest(pass)
	case "warmup":
		l.next = u.existing(warmupOrder, pass)
	case "zipfian":
		l.next = u.zipfian(w.popular, pass)
	case "absent":
		l.next, l.kind = u.absentKeys(pass), engine.Absent
	case "gone":
		l.next, l.kind = u.gone(w.hole, pass), engine.Absent
	case "counters":
		l.next, l.right = w.counters(pass), isCounter
	default:
		return nil, fmt.Errorf("no job named %q", j.Kind)
	}
	var err error
	l.reader, err = w.store.NewReader(engine.Get, l.kind)
	return l, err
}

// job runs loops, one per thread, until each has taken the job's time.
func (w *worker) job(ctx context.Context, j *job) (*Sample, error) {
	if j.Procs > 0 {
		return w.crowd(ctx, j)
	}
	switch j.Kind {
	case "heavy":
		return w.heavy(ctx, j)
	case "cold-absent", "cold-existing":
		return w.cold(ctx, j)
	case "overwrite":
		return w.overwrite(ctx, j)
	case "replace":
		return w.watched(func() (*Sample, error) { return w.replace(ctx, j) })
	case "delete":
		return w.deletePoints(ctx)
	case "delete-ranges":
		return w.deleteRanges(ctx)
	case "add":
		return w.add(ctx, j)
	}
	threads := max(1, j.Threads)
	loops := make([]loop, threads)
	for i := range loops {
		var err error
		if loops[i], err = w.newLoop(j, i); err != nil {
			return nil, err
		}
	}
	limit := time.Duration(j.Seconds * float64(time.Second))
	runtime.GC() // each pays for its own garbage only
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	totals, errs := make([]total, threads), make([]error, threads)
	var group sync.WaitGroup
	for i, l := range loops {
		group.Go(func() { totals[i], errs[i] = runLoop(ctx, l, limit) })
	}
	group.Wait()
	runtime.ReadMemStats(&after)
	for i, l := range loops {
		errs[i] = errors.Join(errs[i], l.close())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s := &Sample{}
	for _, t := range totals {
		s.Operations += int64(t.operations)
		s.Seconds += t.wall.Seconds() / float64(threads)
		s.PerSecond += float64(t.operations) / t.wall.Seconds()
		if threads == 1 {
			s.CPUSeconds = t.cpu.Seconds()
		}
	}
	if s.Operations > 0 {
		s.Allocs = float64(after.Mallocs-before.Mallocs) / float64(s.Operations)
		s.AllocBytes = float64(after.TotalAlloc-before.TotalAlloc) / float64(s.Operations)
	}
	return s, nil
}

type lookups struct {
	reader engine.Reader
	right  func(key, value []byte, word uint64) bool // of a key that is there
	kind   engine.Kind
	next   drawing
	chunk  *chunk
	value  []byte
}

func (l *lookups) close() error { return l.reader.Close() }

func (l *lookups) draw() (int, error) {
	l.chunk.reset()
	l.next(l.chunk)
	return l.chunk.len(), nil
}

func (l *lookups) do() error { return l.some(0, l.chunk.len()) }

// some does the lookups of the chunk from one on up to another.
func (l *lookups) some(from, to int) error {
	for i := from; i < to; i++ {
		value, found, err := l.reader.Get(l.value[:0], l.chunk.key(i))
		if err := l.check(i, value, found, err); err != nil {
			return err
		}
	}
	return nil
}

// timed is some, and times each lookup.
func (l *lookups) timed(from, to int, times *hdrhistogram.Histogram) error {
	for i := from; i < to; i++ {
		start := time.Now()
		value, found, err := l.reader.Get(l.value[:0], l.chunk.key(i))
		took := time.Since(start)
		if err := cmp.Or(l.check(i, value, found, err), record(times, took)); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if the answer to lookup i is wrong, or is one. It keeps the room of the value for the next.
func (l *lookups) check(i int, value []byte, found bool, err error) error {
	key := l.chunk.key(i)
	l.value = value
	switch {
	case err != nil:
		return fmt.Errorf("look up %x: %w", key, err)
	case found != (l.kind == engine.Existing) || found && !l.right(key, value, l.chunk.words[i]):
		return wrongLookup(l.kind, key, value, found)
	}
	return nil
}

// record adds a time to a histogram, which takes a minute at most.
func record(times *hdrhistogram.Histogram, took time.Duration) error {
	if err := times.RecordValue(min(int64(took), int64(time.Minute))); err != nil {
		return fmt.Errorf("record %v: %w", took, err)
	}
	return nil
}

func wrongLookup(kind engine.Kind, key, value []byte, found bool) error {
	what := "not found"
	if found {
		what = fmt.Sprintf("found with the wrong value %x", value)
	}
	return &measure.WrongAnswer{Kind: kind, Key: append([]byte(nil), key...), What: what}
}

// scans is a loop of scans of some length from random keys on.
type scans struct {
	w     *worker
	limit int // 0: everything
	order keys.Permutation
	at    int
	chunk *chunk
	wants []int // entries that they have

	// What a scan has seen.
	entries  int
	sum      uint64
	previous uint64
	disorder bool
}

// scanChunk is the number of scans between two readings of the clock.
const scanChunk = 64

func newScans(w *worker, limit int, pass uint64) *scans {
	u := w.keyspace
	order := keys.NewPermutation(u.n, keys.Mix(u.seed^scanOrder))
	return &scans{w: w, limit: limit, order: order, at: int(pass * passLength), chunk: newChunk(u)}
}

func (s *scans) close() error { return nil }

// visit is called for every entry. The sum of words, the order and the number of
// entries together say that each entry is there, once, with its own value.
func (s *scans) visit(key, value []byte) {
	p := position(key)
	s.disorder = s.disorder || p <= s.previous && s.entries > 0 || len(value) != s.w.start.ValueSize
	s.previous = p
	s.sum += binary.LittleEndian.Uint64(value)
	s.entries++
}

// do does a chunk of scans, or one of everything.
func (s *scans) do() error {
	visit := s.visit
	for i := range s.chunk.len() {
		s.entries, s.sum, s.previous, s.disorder = 0, 0, 0, false
		if err := s.w.store.Scan(s.chunk.key(i), s.limit, visit); err != nil {
			return err
		}
		if want := s.wants[i]; s.disorder || s.entries != want || s.sum != s.chunk.words[i] {
			return &measure.WrongAnswer{
				Kind: engine.Existing, Key: append([]byte(nil), s.chunk.key(i)...),
				What: fmt.Sprintf("a scan from here: %d entries of %d, in order: %t, right sum: %t", s.entries, want,
					!s.disorder, s.sum == s.chunk.words[i]),
			}
		}
	}
	return nil
}

// draw chooses where scans of keys that are left begin and adds up the words of what they should find. It
// counts scans, or the entries of one of everything.
func (s *scans) draw() (int, error) {
	u, c := s.w.keyspace, s.chunk
	c.reset()
	s.wants = s.wants[:0]
	if s.limit == 0 {
		s.wants = append(s.wants, u.n)
		c.keys = u.source.AppendInOrder(c.keys, 0)
		c.words = append(c.words, s.w.checksum)
		return u.n, nil
	}
	var key []byte
	for range scanChunk {
		rank := s.order.At(s.at % u.n)
		s.at++
		c.keys = u.source.AppendInOrder(c.keys, rank)
		want, sum := 0, uint64(0)
		for ; want < s.limit && rank < u.n; rank++ {
			if s.w.hole.has(rank) {
				continue
			}
			key = u.source.AppendInOrder(key[:0], rank)
			sum += u.loaded.Word(key)
			want++
		}
		s.wants, c.words = append(s.wants, want), append(c.words, sum)
	}
	return c.len(), nil
}
