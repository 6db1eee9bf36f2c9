// Package guard is a user service with filters in front of its cache and its database. It decides which layer is
// asked, and in which order.
//
// A lookup passes the black list, the filter of identifiers, and the cache. Of the lookups that need the same row at
// the same time, one asks the database, and a gate bounds how many ask at once. Each layer errs in one direction, and
// the next layer makes up for it: a filter says "maybe" for absent keys, and the cache may be empty. A filter that
// cannot tell says "maybe" with an error; Config.FailClosed decides whether the database is asked then.
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/siftkv/siftkv/redisfilter"
)

// The errors of requests. Other failures wrap none of them.
var (
	ErrNotFound = errors.New("no such user")
	ErrBanned   = errors.New("the user is banned")
	ErrTaken    = errors.New("the name is taken")
	// ErrUnsure means that a filter could not tell while FailClosed is set, or could not be told of a new key.
	ErrUnsure = errors.New("a filter does not answer")
	// ErrDatabase means that a statement failed, or missed its deadline.
	ErrDatabase = errors.New("the database fails")
	// ErrCache means that the database has a change which the cache contradicts until its entry expires. Making the
	// change again updates the cache.
	ErrCache = errors.New("the cache could not be told; try again")
)

// Config is how the service behaves.
type Config struct {
	FailClosed    bool          // refuse what a filter cannot tell, instead of asking the database
	Conns         int           // statements at once
	Queue         int           // requests that wait for their turn; more are refused
	Timeout       time.Duration // of a statement with its wait, and of a write with what precedes it
	FilterTimeout time.Duration // of a question to a filter
}

// Parts are what the service stands on. The caller closes them.
type Parts struct {
	Store    *Store
	Cache    *Cache
	Filters  Filters
	Counters *Counters
	Logger   *slog.Logger
}

// Guard is the service. It is for any number of goroutines, and any number of processes may have one on the same
// database and Redis.
type Guard struct {
	Parts
	Switch Switch // of the filters of identifiers and names
	config Config
	rows   *rows
}

// New returns a service.
func New(p Parts, c Config) *Guard {
	return &Guard{Parts: p, config: c, rows: &rows{
		cache: p.Cache, gate: newGate(c.Conns, c.Queue, &p.Counters.Database),
		counters: p.Counters, log: p.Logger, timeout: c.Timeout,
	}}
}

// Ready returns nil if the service can work: the database answers, the black list takes bans, and, if FailClosed is
// set, the filters answer.
func (g *Guard) Ready(ctx context.Context) error {
	if err := g.Store.Ping(ctx); err != nil {
		return err
	}
	if err := g.Filters.takesBans(); err != nil || !g.config.FailClosed {
		return err
	}
	return g.Filters.Ready(ctx)
}

// User returns a user, ErrNotFound, or ErrBanned.
func (g *Guard) User(ctx context.Context, id int64) (User, error) {
	if banned, err := g.IsBanned(ctx, id); err != nil {
		return User{}, err
	} else if banned {
		return User{}, ErrBanned
	}
	maybe, err := g.filtered(ctx, g.Filters.Users, &g.Counters.Users, idKey(id))
	if err != nil {
		return User{}, err
	}
	if !maybe {
		return User{}, ErrNotFound
	}
	answer, err := g.rows.read(ctx, userKey(id), func(ctx context.Context) (string, bool, error) {
		return g.Store.Name(ctx, id)
	})
	if err != nil {
		return User{}, err
	}
	if !answer.found {
		return User{}, ErrNotFound
	}
	return User{ID: id, Name: answer.value}, nil
}

// Taken reports whether a user has the name. Only a sign-up decides: the name may be taken a moment later.
func (g *Guard) Taken(ctx context.Context, name string) (bool, error) {
	maybe, err := g.filtered(ctx, g.Filters.Names, &g.Counters.Names, []byte(name))
	if err != nil || !maybe {
		return false, err
	}
	answer, err := g.rows.read(ctx, nameKey(name), func(ctx context.Context) (string, bool, error) {
		taken, err := g.Store.Taken(ctx, name)
		return "", taken, err
	})
	return answer.found, err
}

// SignUp makes a user of a name, or returns ErrTaken. The database's constraint decides between sign-ups of one name;
// the filter spares free names a query.
func (g *Guard) SignUp(ctx context.Context, name string) (User, error) {
	if taken, err := g.Taken(ctx, name); err != nil {
		return User{}, err
	} else if taken {
		return User{}, ErrTaken
	}
	u := User{ID: MaxSeed + 1 + rand.Int64N(1<<62), Name: name}
	ctx, cancel := context.WithTimeout(ctx, g.config.Timeout) // from the filters to the commit
	defer cancel()
	inserted := false
	err := g.tell(ctx,
		func(ctx context.Context) error { return g.Filters.Users.Add(ctx, idKey(u.ID)) },
		func(ctx context.Context) error { return g.Filters.Names.Add(ctx, []byte(name)) },
	)
	if err == nil {
		err = g.rows.statement(ctx, &g.Counters.Database.Writes, func(ctx context.Context) (err error) {
			inserted, err = g.Store.Insert(ctx, u)
			return err
		})
	}
	if err != nil {
		return User{}, fmt.Errorf("sign up %q: %w", name, err)
	}
	g.rows.put(ctx, nameKey(name), row{found: true})
	if !inserted {
		return User{}, ErrTaken
	}
	g.rows.put(ctx, userKey(u.ID), row{value: name, found: true})
	return u, nil
}

// maybe asks a filter for a key and counts the answer. True means that the database must be asked. An error means
// that nothing is known and that the request must fail.
func (g *Guard) maybe(ctx context.Context, s Set, counted *FilterCounters, key []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, g.config.FilterTimeout)
	defer cancel()
	maybe, err := s.Contains(ctx, key)
	counted.answered(maybe, err)
	switch {
	case err == nil:
		return maybe, nil
	case g.config.FailClosed:
		return true, fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	g.Logger.DebugContext(ctx, "a filter does not answer; the database is asked", "key", string(key), "error", err)
	return true, nil
}

// filtered is maybe for the filters that can be turned off.
func (g *Guard) filtered(ctx context.Context, s Set, counted *FilterCounters, key []byte) (bool, error) {
	if !g.Switch.On() {
		return true, nil
	}
	return g.maybe(ctx, s, counted, key)
}

// tell adds keys to filters before their row is written. The other order loses keys: a process that ends between the
// two leaves a row whose filter says "no".
func (g *Guard) tell(ctx context.Context, adds ...func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, g.config.FilterTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, add := range adds {
		group.Go(func() error { return add(ctx) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return nil
}

func userKey(id int64) string    { return "user:" + strconv.FormatInt(id, 10) }
func nameKey(name string) string { return "name:" + name }
func banKey(id int64) string     { return "ban:" + strconv.FormatInt(id, 10) }

// Set is a filter that keys are added to.
type Set interface {
	Add(ctx context.Context, key []byte) error
	// Contains returns false only for a key that was never added. With an error the answer is true.
	Contains(ctx context.Context, key []byte) (bool, error)
	// Ready waits until Contains can answer without an error.
	Ready(ctx context.Context) error
}

// Multiset is a Set that counts how often a key was added, and from which a copy can be removed.
type Multiset interface {
	Set
	// Remove must be called only for a key that was added.
	Remove(ctx context.Context, key []byte) (bool, error)
	Metrics() redisfilter.Metrics
}

// Filters are the sets of the service.
type Filters struct {
	Users, Names Set
	Banned       Multiset
	Metrics      map[string]func() redisfilter.Metrics // of the sets in Redis, by the names of the filters
}

// Ready waits until all sets can answer.
func (f *Filters) Ready(ctx context.Context) error {
	return errors.Join(f.Users.Ready(ctx), f.Names.Ready(ctx), f.Banned.Ready(ctx))
}

// takesBans returns why the black list takes no bans, as far as this process knows. It ignores a server that is away:
// a service that fails open works without it.
func (f *Filters) takesBans() error {
	switch m := f.Banned.Metrics(); {
	case m.Full:
		return fmt.Errorf("the black list: %w", redisfilter.ErrFull)
	case !m.Loaded:
		return fmt.Errorf("the black list: %w", redisfilter.ErrIncomplete)
	}
	return nil
}

// Switch turns the filters of identifiers and names off and on. While they are off every key is "maybe". Sign-ups add
// to them all the same, so they can be turned on at any time. The zero value is on.
type Switch struct{ off atomic.Bool }

// On reports whether the filters are on.
func (s *Switch) On() bool { return !s.off.Load() }

// Set turns the filters on or off.
func (s *Switch) Set(on bool) { s.off.Store(!on) }
