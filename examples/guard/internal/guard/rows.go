package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/siftkv/siftkv/examples/guard/internal/cache"
	"github.com/siftkv/siftkv/examples/guard/internal/limit"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

// rows is the way to the database: through the cache, with one query for all who
// want the same key, and through the gate.
type rows struct {
	cache    *cache.Cache
	flight   singleflight.Group
	gate     *limit.Gate
	counters *stats.Counters
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

// read returns the cache's row of a key or the query's.
func (r *rows) read(ctx context.Context, key string, ask query) (row, error) {
	answer, known, away := r.cached(ctx, key)
	if known {
		return answer, nil
	}
	first := false
	answers := r.flight.DoChan(key, func() (any, error) {
		first = true
		return r.load(context.WithoutCancel(ctx), key, ask, !away) // others wait too: the first may go away
	})
	select {
	case a := <-answers:
		if !first {
			r.counters.Shared.Add(1)
		}
		answer, _ := a.Val.(row)
		return answer, a.Err
	case <-ctx.Done():
		return row{}, ctx.Err()
	}
}

// cached returns what the cache knows of a key, or whether the cache is away: then it
// knows nothing.
func (r *rows) cached(ctx context.Context, key string) (answer row, known, away bool) {
	counted := &r.counters.Cache
	counted.Asked.Add(1)
	value, state, err := r.cache.Get(ctx, key)
	switch {
	case err != nil:
		counted.Errors.Add(1)
		r.log.DebugContext(ctx, "the cache does not answer; the database is asked", "error", err)
		away = true
	case state == cache.Found:
		counted.Hits.Add(1)
		return row{value: value, found: true}, true, false
	case state == cache.Null:
		counted.NullHits.Add(1)
		return row{}, true, false
	}
	counted.Misses.Add(1)
	return row{}, false, away
}

// load asks the database, and fills the cache if that is to be done: a cache that has
// just not answered would only cost its timeout once more.
func (r *rows) load(ctx context.Context, key string, ask query, fill bool) (row, error) {
	answer, err := r.ask(ctx, ask)
	if err != nil {
		return row{}, err
	}
	if !answer.found {
		r.counters.Database.Empty.Add(1)
	}
	if fill {
		r.kept(ctx, r.cache.Fill(ctx, key, answer.value, answer.found))
	}
	return answer, nil
}

// ask asks the database.
func (r *rows) ask(ctx context.Context, ask query) (row, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var answer row
	err := r.statement(ctx, &r.counters.Database.Queries, func(ctx context.Context) (err error) {
		answer.value, answer.found, err = ask(ctx)
		return err
	})
	return answer, err
}

// put replaces the cache's row of a key after a write.
func (r *rows) put(ctx context.Context, key string, answer row) {
	r.kept(ctx, r.cache.Put(ctx, key, answer.value, answer.found))
}

// tell is put for an answer that contradicts what the cache may hold: that would be believed.
func (r *rows) tell(ctx context.Context, key string, answer row) error {
	if err := r.cache.Put(ctx, key, answer.value, answer.found); err != nil {
		r.counters.Cache.Errors.Add(1)
		return fmt.Errorf("%w: %w", ErrCache, err)
	}
	return nil
}

// kept notes an error of writing to the cache. The answer is good without it.
func (r *rows) kept(ctx context.Context, err error) {
	if err != nil {
		r.counters.Cache.Errors.Add(1)
		r.log.DebugContext(ctx, "the cache did not keep a row", "error", err)
	}
}

// statement runs one statement when its turn comes, and counts it.
func (r *rows) statement(ctx context.Context, counted counter, run func(context.Context) error) error {
	err := r.gate.Do(ctx, func(ctx context.Context) error {
		counted.Add(1)
		return run(ctx)
	})
	if err != nil && !errors.Is(err, limit.ErrFull) {
		r.counters.Database.Errors.Add(1)
		return fmt.Errorf("%w: %w", ErrDatabase, err)
	}
	return err
}

// counter is an atomic.Uint64.
type counter interface{ Add(delta uint64) uint64 }
