package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

// An entry begins with a mark, so an empty value differs from a null.
const (
	foundMark = '+'
	nullMark  = '-'
)

// Cache keeps answers of the database in Redis: rows for a while, and for a short while that there is no row, a null.
// So a key that a filter wrongly takes for present does not ask the database again and again. It is for any number of
// goroutines.
type Cache struct {
	Redis   redis.UniversalClient // the caller closes it
	Prefix  string                // of all keys, so that services and databases do not meet
	TTL     time.Duration         // of rows, give or take a tenth, lest all expire together
	NullTTL time.Duration         // of nulls
	Timeout time.Duration         // of one operation
}

// get returns what the cache knows of a key. With an error it knows nothing.
func (c *Cache) get(ctx context.Context, key string) (answer row, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	key = c.Prefix + key
	entry, err := c.Redis.Get(ctx, key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return row{}, false, nil
	case err != nil:
		return row{}, false, fmt.Errorf("cache: read %q: %w", key, err)
	case entry == string(nullMark):
		return row{}, true, nil
	case entry != "" && entry[0] == foundMark:
		return row{entry[1:], true}, true, nil
	}
	return row{}, false, fmt.Errorf("cache: %q holds %.16q, which no cache wrote: delete it", key, entry)
}

// A writer puts, which replaces an entry. A reader fills, which replaces none: so a reader that is slower than a writer
// cannot hide what was written.
const (
	put  = ""
	fill = "NX"
)

// set keeps what the database has of a key; mode is put or fill.
func (c *Cache) set(ctx context.Context, key string, answer row, mode string) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	entry, ttl := string(nullMark), c.NullTTL
	if answer.found {
		entry = string(foundMark) + answer.value
		ttl = c.TTL + time.Duration((rand.Float64()-0.5)/5*float64(c.TTL))
	}
	key = c.Prefix + key
	err := c.Redis.SetArgs(ctx, key, entry, redis.SetArgs{Mode: mode, TTL: ttl}).Err()
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: NX found an entry
		return fmt.Errorf("cache: write %q: %w", key, err)
	}
	return nil
}

// rows is the way to the database: through the cache, with one query for all lookups of the same key, and through the
// gate.
type rows struct {
	cache    *Cache
	flight   singleflight.Group
	gate     *gate
	counters *Counters
	log      *slog.Logger
	timeout  time.Duration
}

// row is an answer of the database.
type row struct {
	value string
	found bool
}

// query asks the database for a key's row.
type query func(context.Context) (value string, found bool, err error)

// read returns the cache's row of a key, or else the query's.
func (r *rows) read(ctx context.Context, key string, ask query) (row, error) {
	answer, known, err := r.cache.get(ctx, key)
	r.counters.Cache.answered(answer.found, known, err)
	if known {
		return answer, nil
	}
	if err != nil {
		r.log.DebugContext(ctx, "the cache does not answer; the database is asked", "error", err)
	}
	keep := err == nil // a cache that has just failed would cost its timeout once more
	answers := r.flight.DoChan(key, func() (any, error) {
		return r.load(context.WithoutCancel(ctx), key, ask, keep) // others wait too: the first may go away
	})
	select {
	case a := <-answers:
		answer, _ := a.Val.(row)
		return answer, a.Err
	case <-ctx.Done():
		return row{}, ctx.Err()
	}
}

// load asks the database, and fills the cache if keep is set.
func (r *rows) load(ctx context.Context, key string, ask query, keep bool) (row, error) {
	answer, err := r.ask(ctx, ask)
	if err != nil {
		return row{}, err
	}
	if !answer.found {
		r.counters.Database.Empty.Add(1)
	}
	if keep {
		r.kept(ctx, r.cache.set(ctx, key, answer, fill))
	}
	return answer, nil
}

func (r *rows) ask(ctx context.Context, ask query) (answer row, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err = r.statement(ctx, &r.counters.Database.Queries, func(ctx context.Context) (err error) {
		answer.value, answer.found, err = ask(ctx)
		return err
	})
	return answer, err
}

// put replaces the cache's row of a key after a write.
func (r *rows) put(ctx context.Context, key string, answer row) {
	r.kept(ctx, r.cache.set(ctx, key, answer, put))
}

// tell is put for an answer that the cache may contradict: readers would believe the cache.
func (r *rows) tell(ctx context.Context, key string, answer row) error {
	if err := r.cache.set(ctx, key, answer, put); err != nil {
		r.counters.Cache.Errors.Add(1)
		return fmt.Errorf("%w: %w", ErrCache, err)
	}
	return nil
}

// kept counts an error of writing to the cache. The answer is right without it.
func (r *rows) kept(ctx context.Context, err error) {
	if err != nil {
		r.counters.Cache.Errors.Add(1)
		r.log.DebugContext(ctx, "the cache did not keep a row", "error", err)
	}
}

// statement runs one statement when its turn comes, and counts it.
func (r *rows) statement(ctx context.Context, counted *atomic.Uint64, run func(context.Context) error) error {
	err := r.gate.do(ctx, func(ctx context.Context) error {
		counted.Add(1)
		return run(ctx)
	})
	if err != nil && !errors.Is(err, ErrOverload) {
		r.counters.Database.Errors.Add(1)
		return fmt.Errorf("%w: %w", ErrDatabase, err)
	}
	return err
}

// ErrOverload means that the gate's queue was full, or that the caller's time ended in the queue. The statement was
// not begun.
var ErrOverload = errors.New("too many callers")

// A gate lets a number of callers through at once and has a queue for more. It refuses callers who find the queue
// full: a queue without a bound turns a short overload into a long one.
type gate struct {
	slots   chan struct{}
	queue   int64
	counted *DatabaseCounters
}

func newGate(slots, queue int, counted *DatabaseCounters) *gate {
	return &gate{slots: make(chan struct{}, max(slots, 1)), queue: int64(max(queue, 0)), counted: counted}
}

// do calls f when a slot is free. It returns ErrOverload at once if the queue is full, and when ctx ends in the queue.
func (g *gate) do(ctx context.Context, f func(context.Context) error) error {
	if err := g.enter(ctx); err != nil {
		g.counted.Shed.Add(1)
		return err
	}
	g.counted.Running.Add(1)
	defer func() {
		g.counted.Running.Add(-1)
		<-g.slots
	}()
	return f(ctx)
}

func (g *gate) enter(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	defer g.counted.Waiting.Add(-1)
	if g.counted.Waiting.Add(1) > g.queue {
		return fmt.Errorf("%w: %d at work, %d in the queue", ErrOverload, cap(g.slots), g.queue)
	}
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w in the queue", ErrOverload, ctx.Err())
	}
}
