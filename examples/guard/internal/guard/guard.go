// Package guard is the service: what is asked of filters, of the cache and of the
// database, and in which order.
//
// A lookup passes the black list, then the filter of identifiers, then the cache;
// of those that ask the database for the same key at the same time one does, and
// no more than a bounded number ask at all. Every layer may be wrong in one way
// only, and the next one makes up for it: filters say "maybe" of keys that are not
// there, the cache may be empty. A filter that cannot tell says "maybe" with an
// error, and Config.FailClosed decides whether the service then asks the database
// or refuses.
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/siftkv/siftkv/examples/guard/internal/cache"
	"github.com/siftkv/siftkv/examples/guard/internal/limit"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
	"github.com/siftkv/siftkv/examples/guard/internal/users"
)

// What a request may come to. Errors for other reasons wrap none of these.
var (
	ErrNotFound = errors.New("no such user")
	ErrBanned   = errors.New("the user is banned")
	ErrTaken    = errors.New("the name is taken")
	// ErrUnsure says that a filter could not tell, and FailClosed forbids to ask
	// the database in its place; or that a filter could not be told of a new key.
	ErrUnsure = errors.New("a filter does not answer")
	// ErrDatabase says that a statement failed, or was not done in time.
	ErrDatabase = errors.New("the database fails")
	// ErrCache says that a change is in the database, and that the cache may contradict it
	// for as long as it keeps answers. Making the change again tells the cache.
	ErrCache = errors.New("the cache could not be told; try again")
)

// Config is how the service behaves.
type Config struct {
	FailClosed    bool          // refuse what a filter cannot tell, instead of asking the database
	Conns         int           // statements at once
	Queue         int           // requests that wait for their turn; more are refused
	Timeout       time.Duration // of a statement, with the wait for its turn; of a write, with what comes before it
	FilterTimeout time.Duration // of a question to a filter
}

// Store is a database: *users.Store is, in SQL. It may be used from many goroutines. It is the source of truth, and
// decides alone who gets a name or an identifier.
type Store interface {
	Ping(ctx context.Context) error
	// Name returns the name of a user, and whether there is such a user.
	Name(ctx context.Context, id int64) (string, bool, error)
	Taken(ctx context.Context, name string) (bool, error)
	Banned(ctx context.Context, id int64) (bool, error)
	// Insert, Ban and Unban report whether they changed something: Insert does not if the name, or the identifier,
	// is another's.
	Insert(ctx context.Context, u users.User) (bool, error)
	Ban(ctx context.Context, id int64) (bool, error)
	Unban(ctx context.Context, id int64) (bool, error)
}

// Parts is what the service stands on. All are the caller's to close.
type Parts struct {
	Store    Store
	Cache    *cache.Cache
	Filters  Filters
	Counters *stats.Counters
	Logger   *slog.Logger
}

// Guard is the service. It may be used from many goroutines, and many processes
// may have theirs on the same database and Redis.
type Guard struct {
	Parts
	Switch Switch // of the filters of identifiers and names
	config Config
	rows   *rows
}

// New returns a service.
func New(p Parts, c Config) *Guard {
	d := &p.Counters.Database
	gate := limit.New(c.Conns, c.Queue, limit.Observer{Running: &d.Running, Waiting: &d.Waiting, Refused: &d.Shed})
	return &Guard{
		Parts: p, config: c,
		rows: &rows{cache: p.Cache, gate: gate, counters: p.Counters, log: p.Logger, timeout: c.Timeout},
	}
}

// Ready returns nil if the service can do its work: the database answers, the black
// list takes bans, and the filters answer, if nothing is to be done without them.
func (g *Guard) Ready(ctx context.Context) error {
	if err := g.Store.Ping(ctx); err != nil {
		return err
	}
	if err := g.Filters.takesBans(); err != nil || !g.config.FailClosed {
		return err
	}
	return g.Filters.Ready(ctx)
}

// maybe asks a filter for a key, and counts the answer. "Maybe" means that the
// database has to be asked. An error means that nothing is known and that the
// service must not go on.
func (g *Guard) maybe(ctx context.Context, s Set, counted *stats.Filter, key []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, g.config.FilterTimeout)
	defer cancel()
	maybe, err := s.Contains(ctx, key)
	counted.Answered(maybe, err)
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
func (g *Guard) filtered(ctx context.Context, s Set, counted *stats.Filter, key []byte) (bool, error) {
	if !g.Switch.On() {
		return true, nil
	}
	return g.maybe(ctx, s, counted, key)
}

// tell adds a key to filters before its row is written. The other order loses
// keys: a process that ends between the two leaves a row whose filter says "no".
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
