// Package owners has a filter for each of many owners, in which keys are remembered for some time: what each user of
// a feed has seen in the last week.
//
//	seen, err := owners.New(ctx, client, "seen", 100, 0.01, &owners.Options{Keep: 8}) // of redisfilter.Open
//	fresh, err := seen.Of("ada").AddNew(ctx, []byte("news")) // one trip, one script
//
// Errors are those of package redisfilter.
package owners

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// Sets are the filters of all owners. They are for any number of goroutines.
//
// Time is cut into periods, and each owner has a set for each of the last few, its windows. Adds go to the window of
// the period; lookups ask all that are kept, in one trip; and Redis removes a window when it is not asked any more.
// So a key is remembered for at least Keep-1 periods, and for at most Keep.
//
// Nothing is made or stored for an owner before the first add. So a window that was lost, by eviction or a
// failover, cannot be told from one without keys. "No" is not certain: a loss shows an item twice. For what must not be
// forgotten there is redisfilter.Set. All values of owners have an end, and those of a redisfilter.Set have none. If
// memory may run out, the eviction policy volatile-ttl gives up the oldest windows, and never such a set.
type Sets struct {
	options Options
	stored  config.Stored
	asked   config.Request
	current atomic.Pointer[state]
	closed  atomic.Bool

	calendar calendar
	clock    *clock
}

// A state is what a process knows of the configuration.
type state struct {
	cfg     *config.Config
	windows *windows
	err     error // ErrDropped or ErrMismatch for good, else why the last poll failed
}

// Options are what New may be told. Nil, and the zero value of each field, mean the defaults. All programs that share
// windows must give the same Period, Keep, Growth and PublicHash.
type Options struct {
	// Period is the length of a window, at least 1 s. The default is 24 hours. Windows begin at multiples of it since
	// 1970 UTC, by the clock of the server.
	Period time.Duration

	// Keep is how many windows are asked, 1 to 366 and 100 years in all: the current one and those before it. The
	// default is 7. With 1, all keys are forgotten when a window ends.
	Keep int

	// Growth is for how many times as many keys each layer of a window is made as the one before, which is full when
	// it is taken on: from 2 to 100. The default is 10.
	Growth float64

	// PublicHash makes the set hash keys with xxhash64 and no secret: a little faster. A caller that knows a key can
	// then make others that the set takes for it.
	PublicHash bool

	// Timeout bounds operations whose context has no deadline. The default is 250 ms.
	Timeout time.Duration

	// Logger hears of losses. The default is slog.Default.
	Logger *slog.Logger
}

const (
	defaultPeriod = 24 * time.Hour
	minPeriod     = time.Second
	maxPeriod     = 10 * 366 * 24 * time.Hour
	defaultKeep   = 7
	maxKeep       = 366
	maxMemory     = 100 * 366 * 24 * time.Hour // of all windows: times are nanoseconds, which end in 2262
	defaultGrowth = 10
)

// New returns the sets of a name, and makes their configuration if there is none. o may be nil.
//
// A window is made for n keys of an owner, and takes on larger layers when it is almost full: best is a tenth more
// than most owners add in a period. rate is that of false positives over all windows that are asked, with all of
// their layers, from 1e-5 * Keep to 0.5. At 1 % and seven windows, 100 keys of an owner in a window take some 400
// bytes of Redis, and 1,000 some 2.6 KB.
func New(ctx context.Context, c *redisfilter.Client, name string, n int, rate float64, o *Options) (*Sets, error) {
	return open(ctx, conn.Of(c), name, n, rate, o, clockOf(conn.Of(c), config.Stored{Name: name}.Key()))
}

func open(ctx context.Context, c *conn.Conn, name string, n int, rate float64, o *Options,
	clock *clock) (*Sets, error) {
	s := &Sets{stored: config.Stored{Conn: c, Name: name}, clock: clock}
	if o != nil {
		s.options = *o
	}
	o = &s.options
	if o.Timeout < 0 {
		return nil, errors.New("redisfilter: Timeout must not be negative")
	}
	o.Timeout, o.Logger = cmp.Or(o.Timeout, conn.DefaultTimeout), cmp.Or(o.Logger, slog.Default())
	fresh, err := newConfig(config.Request{
		Kind: config.KindWindows, Keys: n, Rate: rate, Growth: o.Growth, PublicHash: o.PublicHash,
		Period: o.Period, Keep: o.Keep,
	})
	if err = cmp.Or(err, s.stored.CheckName()); err != nil {
		return nil, err
	}
	s.asked, s.calendar = fresh.Asked, calendar{Period: fresh.Asked.Period, Keep: fresh.Asked.Keep}
	s.current.Store(&state{})
	ctx, cancel := conn.Deadline(ctx, o.Timeout)
	defer cancel()
	if err := s.start(ctx, fresh); err != nil {
		return nil, s.wrap(err)
	}
	c.Watch.Add(poller{s})
	c.Watch.Add(clock)
	return s, nil
}

// start makes the configuration unless there is one, or was one and it was dropped, and reads it and the clock.
func (s *Sets) start(ctx context.Context, fresh *config.Config) error {
	old, err := s.stored.Read(ctx)
	if err != nil {
		return err
	}
	if old == nil || old.Dropped {
		if _, err := s.stored.Swap(ctx, old, fresh); err != nil {
			return err
		}
	}
	s.refresh(ctx)
	if err := s.current.Load().err; err != nil {
		return err
	}
	return s.clock.Read(ctx)
}

// A poller is sets for the watch, whose method is no part of their API.
type poller struct{ sets *Sets }

func (p poller) Refresh(ctx context.Context) { p.sets.refresh(ctx) }

// refresh reads the configuration. It puts one back that is gone: forgetting does the sets no harm.
func (s *Sets) refresh(ctx context.Context) {
	old := s.current.Load()
	next := *old
	data, err := s.stored.Conn.RDB.Get(ctx, s.stored.Key()).Bytes()
	switch {
	case errors.Is(err, redis.Nil) && conn.ForGood(old.err): // of sets that were dropped the tombstone has expired
		return
	case errors.Is(err, redis.Nil):
		next.err = fmt.Errorf("%w: its configuration was removed from redis", redisfilter.ErrIncomplete)
		if old.usable() == nil {
			s.options.Logger.Warn("the configuration of a set in redis was lost", "set", s.stored.Name)
			_, _ = s.stored.Swap(ctx, nil, old.cfg)
			s.stored.Conn.Watch.Kick()
		}
	case err != nil:
		next.err = conn.Lasting(old.err, err)
	default:
		cfg, err := s.stored.Accept(data, s.asked)
		if next.err = err; err != nil {
			next.err = conn.Lasting(old.err, err)
		} else if next.cfg = cfg; old.cfg == nil || !old.cfg.SameShape(cfg) {
			next.windows = newWindows(s.stored.Conn, s.stored.Name, cfg)
		}
	}
	s.current.CompareAndSwap(old, &next)
}

// usable returns why operations cannot even be tried.
func (s *state) usable() error {
	if conn.ForGood(s.err) {
		return s.err
	}
	if s.cfg == nil {
		return fmt.Errorf("%w: its configuration was not read yet", redisfilter.ErrUnavailable)
	}
	return nil
}

func (s *Sets) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return conn.Deadline(ctx, s.options.Timeout)
}

func (s *Sets) wrap(err error) error { return s.stored.Conn.Wrap(s.stored.Name, err) }

func (s *Sets) now() (*state, error) {
	if s.closed.Load() {
		return nil, redisfilter.ErrClosed
	}
	now := s.current.Load()
	return now, now.usable()
}

// clockOf returns the clock of the server that holds a key. The nodes of a cluster each have their own.
func clockOf(c *conn.Conn, key string) *clock {
	ask := func(ctx context.Context) (time.Time, error) {
		const script = "local t = redis.call('TIME') return t[1] * 1000000 + t[2]" // TIME alone goes to any node
		cmd := redis.NewIntCmd(ctx, "eval", script, 1, key)
		c.Run(ctx, cmd)
		micro, err := cmd.Result()
		return time.UnixMicro(micro), err
	}
	return &clock{Ask: ask, Now: time.Now}
}

// newConfig fills in the defaults of a request and returns what it leads to.
func newConfig(r config.Request) (*config.Config, error) {
	r.Period, r.Keep = cmp.Or(r.Period, defaultPeriod), cmp.Or(r.Keep, defaultKeep)
	r.Growth = cmp.Or(r.Growth, defaultGrowth)
	if r.Period < minPeriod || r.Period > maxPeriod {
		return nil, fmt.Errorf("redisfilter: Period is from %v to %v, not %v", minPeriod, maxPeriod, r.Period)
	}
	if r.Keep < 1 || r.Keep > maxKeep {
		return nil, fmt.Errorf("redisfilter: Keep is from 1 to %d, not %d", maxKeep, r.Keep)
	}
	if r.Period > maxMemory/time.Duration(r.Keep) {
		return nil, fmt.Errorf("redisfilter: %d windows of %v are longer than %v", r.Keep, r.Period, maxMemory)
	}
	if least := config.MinGrowing * float64(r.Keep); !(r.Rate >= least && r.Rate <= 0.5) {
		return nil, fmt.Errorf("redisfilter: the rate of false positives of %d windows is from %g to 0.5, not %g",
			r.Keep, least, r.Rate)
	}
	for _, r.ShardBytes = range []int{config.DefaultShard, config.MaxShardBytes} {
		// A key is asked in each window. The one that just began when an operation asks one more adds next to nothing.
		each := r
		each.Rate /= float64(r.Keep)
		cfg, err := config.New(each)
		if err != nil {
			return nil, err
		}
		if cfg.Partitions == 1 { // a window grows from one shard
			cfg.Asked, cfg.Generation = r, config.NewGeneration()
			return cfg, nil
		}
	}
	return nil, fmt.Errorf("redisfilter: a window of %d keys at first is too large: it grows from %d on as well",
		r.Keys, r.Keys/100)
}

// Drop removes the configuration. Other processes are told ErrDropped for an hour. Redis removes the windows of the
// owners when their time comes.
func (s *Sets) Drop(ctx context.Context) error {
	for {
		now, err := s.now()
		if errors.Is(err, redisfilter.ErrDropped) {
			return nil
		} else if err != nil {
			return s.wrap(err)
		}
		dropped, err := s.stored.Drop(ctx, now.cfg)
		if err == nil && dropped {
			s.refresh(ctx)
			return nil
		}
		if err = cmp.Or(err, s.stored.Conn.Watch.Poll(ctx)); err != nil {
			return s.wrap(err)
		}
	}
}

// Close ends what the sets do in the background. What is in Redis stays.
func (s *Sets) Close() error {
	s.closed.Store(true)
	s.stored.Conn.Watch.Remove(s.clock)
	s.stored.Conn.Watch.Remove(poller{s})
	return nil
}

// maxOwner keeps Redis keys short; an owner is a part of each.
const maxOwner = 200

// Of returns the windows of an owner, any text of 1 to 200 bytes; operations of another fail. It is cheap: no trip,
// and nothing to be closed.
func (s *Sets) Of(owner string) *Set { return &Set{s, owner} }
