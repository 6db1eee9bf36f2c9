package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/window"
)

// Windows are sets of many owners in which keys are remembered for some time: what each user of a feed
// has seen in the last week. They are for any number of goroutines.
//
// Time is cut into periods, and each owner has a set for each of the last few, its windows. Adds go to the
// window of the period; lookups ask all that are kept, in one trip; and Redis removes a window when it is not
// asked any more. So a key is remembered for at least Keep-1 periods, and for at most Keep.
//
// Nothing is made or stored for an owner before the first add. So nobody can tell a window that was
// lost, by eviction or a failover, from one without keys, and "no" is not certain: a loss shows an item twice. For
// what must not be forgotten there is Set. All values of owners have an end, and those of a Set have none: if
// memory may run out, the eviction policy volatile-ttl gives up the oldest windows, and never a Set.
type Windows struct {
	lineage
	calendar window.Calendar
	clock    *window.Clock
}

// WindowOptions are what NewWindows may be told. Nil, and the zero value of each field, mean the
// defaults. All programs that share windows must give the same Period, Keep, Growth and PublicHash.
type WindowOptions struct {
	// Period is the length of a window, at least 1 s. The default is 24 hours. Windows begin at
	// multiples of it since 1970 UTC, by the clock of the server.
	Period time.Duration

	// Keep is how many windows are asked, 1 to 366 and 100 years in all: the current one and those
	// before it. The default is 7. With 1, all keys are forgotten when a window ends.
	Keep int

	// Growth is for how many times as many keys each layer of a window is made as the one before, which
	// is full when it is taken on: from 2 to 100. The default is 10.
	Growth float64

	// PublicHash makes the set hash keys with xxhash64 and no secret: a little faster. Whoever knows a
	// key can then make others that the set takes for it.
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

// NewWindows returns the windows of a name, and makes their configuration if there is none. o may be nil.
//
// A window is made for n keys of an owner, and takes on larger layers when it is almost full: best is a
// tenth more than most owners add in a period. rate is that of false positives over all windows that are
// asked, with all of their layers, from 1e-5 * Keep to 0.5. At 1 % and seven windows, 100 keys of an owner in a
// window take some 400 bytes of Redis, and 1,000 some 2.6 KB.
func NewWindows(ctx context.Context, c *Client, name string, n int, rate float64, o *WindowOptions) (*Windows, error) {
	return newWindows(ctx, c, name, n, rate, o, clockOf(c, layout.ConfigKey(name)))
}

func newWindows(ctx context.Context, c *Client, name string, n int, rate float64, o *WindowOptions,
	clock *window.Clock) (*Windows, error) {
	if o == nil {
		o = &WindowOptions{}
	}
	asked := request{
		Kind: kindWindows, Keys: n, Rate: rate, Growth: o.Growth, PublicHash: o.PublicHash,
		Period: o.Period, Keep: o.Keep,
	}
	fresh, err := newWindowsConfig(asked)
	if err != nil {
		return nil, err
	}
	w := &Windows{
		lineage: lineage{
			lifecycle: lifecycle{timeout: o.Timeout, logger: o.Logger},
			client:    c, name: name, asked: fresh.Asked,
		},
		calendar: window.Calendar{Period: fresh.Asked.Period, Keep: fresh.Asked.Keep},
		clock:    clock,
	}
	w.open = func(cfg *config) content { return newOwners(c, name, cfg) }
	if err := w.start(ctx, fresh); err != nil {
		return nil, err
	}
	ctx, cancel := w.deadline(ctx)
	defer cancel()
	if err := w.clock.Read(ctx); err != nil {
		return nil, errors.Join(c.wrap(name, err), w.Close())
	}
	c.watch.Add(w.clock)
	return w, nil
}

// clockOf returns the clock of the server that holds a key. The nodes of a cluster each have their own.
func clockOf(c *Client, key string) *window.Clock {
	ask := func(ctx context.Context) (time.Time, error) {
		const script = "local t = redis.call('TIME') return t[1] * 1000000 + t[2]" // TIME alone goes to any node
		cmd := redis.NewIntCmd(ctx, "eval", script, 1, key)
		c.run(ctx, cmd)
		micro, err := cmd.Result()
		return time.UnixMicro(micro), err
	}
	return &window.Clock{Ask: ask, Now: time.Now}
}

// newWindowsConfig fills in the defaults of a request and returns what it leads to.
func newWindowsConfig(r request) (*config, error) {
	if r.Period == 0 {
		r.Period = defaultPeriod
	}
	if r.Keep == 0 {
		r.Keep = defaultKeep
	}
	if r.Growth == 0 {
		r.Growth = defaultGrowth
	}
	if r.Period < minPeriod || r.Period > maxPeriod {
		return nil, fmt.Errorf("redisfilter: Period is from %v to %v, not %v", minPeriod, maxPeriod, r.Period)
	}
	if r.Keep < 1 || r.Keep > maxKeep {
		return nil, fmt.Errorf("redisfilter: Keep is from 1 to %d, not %d", maxKeep, r.Keep)
	}
	if r.Period > maxMemory/time.Duration(r.Keep) {
		return nil, fmt.Errorf("redisfilter: %d windows of %v are longer than %v", r.Keep, r.Period, maxMemory)
	}
	if least := minGrowing * float64(r.Keep); !(r.Rate >= least && r.Rate <= 0.5) {
		return nil, fmt.Errorf("redisfilter: the rate of false positives of %d windows is from %g to 0.5, not %g",
			r.Keep, least, r.Rate)
	}
	for _, r.ShardBytes = range []int{defaultShard, maxShardBytes} {
		// A key is asked in each window. The one that just began when an operation asks one more adds next to nothing.
		each := r
		each.Rate /= float64(r.Keep)
		cfg, err := newConfig(each)
		if err != nil {
			return nil, err
		}
		if cfg.Partitions == 1 { // a window grows from one shard
			cfg.Asked, cfg.Generation = r, newGeneration()
			return cfg, nil
		}
	}
	return nil, fmt.Errorf("redisfilter: a window of %d keys at first is too large: it grows from %d on as well",
		r.Keys, r.Keys/100)
}

// Drop removes the configuration. Other processes are told ErrDropped for an hour. Redis removes the
// windows of the owners when their time comes.
func (w *Windows) Drop(ctx context.Context) error { return w.client.wrap(w.name, w.drop(ctx)) }

// Close ends what the windows do in the background. What is in Redis stays.
func (w *Windows) Close() error {
	w.client.watch.Remove(w.clock)
	w.close()
	return nil
}

// maxOwner keeps Redis keys short; an owner is a part of each.
const maxOwner = 200

// Of returns the windows of an owner, any text of 1 to 200 bytes; operations of another fail. It is cheap:
// no trip, and nothing to be closed.
func (w *Windows) Of(owner string) *OwnerSet { return &OwnerSet{w, owner} }
