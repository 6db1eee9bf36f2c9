package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/siftkv/siftkv/redisfilter"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
)

// What is not worth a flag. All processes of a service must agree on what is said of feeds.
const (
	growth      = 2 // a filter's next layer is twice as large as its last one
	banRate     = 0.001
	feedItems   = 1000 // what a user is shown in a period before the set grows
	feedGrowth  = 10
	feedRate    = 0.01
	feedPeriod  = 24 * time.Hour
	feedPeriods = 7 // an item may come again after a week
)

// openTime is how long Redis may take at the start, when it is busy with the first
// of the loads.
const openTime = 30 * time.Second

// loadable is what sets have in common that are loaded from the database.
type loadable interface {
	Load(context.Context, redisfilter.Source) error
	Drop(context.Context) error
	Close() error
}

// openFilters opens the service's sets in Redis, or makes them. Sets that are new or
// were lost are loaded in the background; until then they say "maybe" with an
// error. With f.Rebuild all are loaded anew before openFilters returns.
func (p *parts) openFilters(ctx context.Context, f flags, o *redis.UniversalOptions) error {
	opening, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	client, err := redisfilter.Open(opening, o)
	if err != nil {
		return fmt.Errorf("%w; is Redis there?", err)
	}
	p.onClose(client.Close)
	sets := opener{parts: p, flags: f, client: client}
	users, names := sets.growing(opening, "users", p.db.IDs), sets.growing(opening, "names", p.db.Names)
	banned := sets.removable(opening, "banned", p.db.BannedIDs)
	p.Filters = guard.Filters{
		Users: sets.near(opening, users), Names: sets.near(opening, names), Banned: banned,
		Metrics: map[string]func() redisfilter.Metrics{
			"users": users.Metrics, "names": names.Metrics, "banned": banned.Metrics,
		},
	}
	return errors.Join(p.openFeed(opening, f, client), sets.done(ctx))
}

// opener opens sets until one fails.
type opener struct {
	*parts
	flags  flags
	client *redisfilter.Client
	loads  []func(context.Context) error
	err    error
}

// options are of sets that are loaded from a source.
func (o *opener) options(source redisfilter.Source) *redisfilter.Options {
	return &redisfilter.Options{Source: source, Grace: grace, Timeout: o.flags.RedisTimeout, Logger: o.Logger}
}

// name is a set's name. Another database has other sets.
func (o *opener) name(of string) string { return of + "-" + o.db.Instance() }

func (o *opener) growing(ctx context.Context, name string, source redisfilter.Source) *redisfilter.Set {
	options := o.options(source)
	options.Growth = growth
	return opened(ctx, o, source, func() (*redisfilter.Set, error) {
		return redisfilter.New(ctx, o.client, o.name(name), o.flags.Capacity, o.flags.Rate, options)
	})
}

// near returns a copy of a set in this process, if the flags want one.
func (o *opener) near(ctx context.Context, s *redisfilter.Set) guard.Set {
	if o.err != nil || !o.flags.Replica {
		return s
	}
	r, err := s.Replica(ctx, nil)
	if err != nil {
		o.err = err
		return s
	}
	o.onClose(r.Close)
	return r
}

func (o *opener) removable(ctx context.Context, name string, source redisfilter.Source) *redisfilter.Cuckoo {
	return opened(ctx, o, source, func() (*redisfilter.Cuckoo, error) {
		return redisfilter.NewCuckoo(ctx, o.client, o.name(name), o.flags.Bans, banRate, o.options(source))
	})
}

// opened opens a set, unless one before it failed, and sees to its load and its end.
func opened[S loadable](ctx context.Context, o *opener, source redisfilter.Source, open func() (S, error)) (s S) {
	if o.err != nil {
		return s
	}
	if s, o.err = open(); o.err != nil {
		return s
	}
	o.onClose(s.Close)
	if o.flags.outlived() || o.flags.Drop {
		o.onEnd(ctx, s.Drop)
	}
	o.loads = append(o.loads, func(ctx context.Context) error { return s.Load(ctx, source) })
	return s
}

// done loads the sets if that was asked for, or returns why one was not opened.
func (o *opener) done(ctx context.Context) error {
	if o.err != nil || !o.flags.Rebuild {
		return o.err
	}
	o.Logger.Info("the filters are loaded anew")
	group, ctx := errgroup.WithContext(ctx)
	for _, load := range o.loads {
		group.Go(func() error { return load(ctx) })
	}
	return group.Wait()
}

// openFeed opens the sets of what users were shown. Nothing needs to be loaded: what
// was lost is shown again.
func (p *parts) openFeed(ctx context.Context, f flags, client *redisfilter.Client) error {
	feed, err := redisfilter.NewWindows(ctx, client, "feed-"+p.db.Instance(), feedItems, feedRate,
		&redisfilter.WindowOptions{
			Period: feedPeriod, Keep: feedPeriods, Growth: feedGrowth, Timeout: f.RedisTimeout, Logger: p.Logger,
		})
	if err != nil {
		return err
	}
	p.onClose(feed.Close)
	if f.outlived() || f.Drop {
		p.onEnd(ctx, feed.Drop)
	}
	p.Filters.Feed = func(owner string) guard.Seen { return feed.Of(owner) }
	return nil
}
