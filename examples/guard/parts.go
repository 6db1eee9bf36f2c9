package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/inprocess"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
)

const (
	spareConns = 4                      // to the database, beyond those of requests: for scans and health checks
	dialTime   = 500 * time.Millisecond // for a connection to Redis
	openTime   = 30 * time.Second       // for Redis at the start, when it is busy with the first loads
	growth     = 2                      // a filter's next layer is twice as large as its last one
	banRate    = 0.001                  // the black list's share of false positives
)

// parts are what the service stands on. They end with it.
type parts struct {
	guard.Parts
	closers []func() error
}

// onClose adds what is done at the end, last first.
func (p *parts) onClose(f func() error) { p.closers = append(p.closers, f) }

// Close ends all parts in the opposite order of their beginning.
func (p *parts) Close() error {
	var errs []error
	for _, f := range slices.Backward(p.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// openParts opens the database, then Redis, then the filters, which are loaded from the database.
func openParts(ctx context.Context, f flags, log *slog.Logger) (*parts, error) {
	p := &parts{Parts: guard.Parts{Counters: guard.NewCounters(), Logger: log}}
	if err := p.open(ctx, f); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *parts) open(ctx context.Context, f flags) error {
	if err := p.openStore(ctx, f); err != nil {
		return err
	}
	if err := p.Store.Seed(ctx, f.Users); err != nil {
		return err
	}
	options, err := p.redisOptions(f)
	if err != nil {
		return err
	}
	client := redis.NewUniversalClient(options)
	p.onClose(client.Close)
	p.Cache = &guard.Cache{
		Redis: client, Prefix: "guard:" + p.Store.Instance + ":",
		TTL: f.CacheTTL, NullTTL: f.NullTTL, Timeout: f.RedisTimeout,
	}
	return p.openFilters(ctx, f, options)
}

func (p *parts) openStore(ctx context.Context, f flags) (err error) {
	if f.Postgres != "" {
		p.Store, err = guard.OpenPostgres(ctx, f.Postgres, f.DBConns+spareConns, f.Timeout)
	} else {
		if f.Data != "" {
			err = os.MkdirAll(f.Data, 0o700)
		} else if f.Data, err = os.MkdirTemp("", "guard-"); err == nil {
			p.onClose(func() error { return os.RemoveAll(f.Data) })
			p.Logger.Info("the database is SQLite and ends with this process; keep one by --data DIR or --postgres URL")
		}
		if err != nil {
			return fmt.Errorf("make a directory for the database: %w; name one by --data", err)
		}
		p.Store, err = guard.OpenSQLite(ctx, f.Data)
	}
	if err == nil {
		p.onClose(p.Store.Close)
	}
	return err
}

// redisOptions returns how to reach Redis, and starts one in this process if none is named.
func (p *parts) redisOptions(f flags) (*redis.UniversalOptions, error) {
	o := &redis.UniversalOptions{
		Addrs: f.Redis, MasterName: f.RedisMaster, Username: f.RedisUser, Password: f.RedisPassword,
		IsClusterMode: f.RedisCluster,
		// Requests bound every operation, and none waits for a Redis that is away.
		ContextTimeoutEnabled: true, DialTimeout: dialTime, DialerRetries: 1, MaxRetries: 1, MinRetryBackoff: -1,
	}
	if f.RedisTLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if len(f.Redis) > 0 {
		return o, nil
	}
	server, err := inprocess.Start()
	if err != nil {
		return nil, err
	}
	p.onClose(func() error { server.Close(); return nil })
	p.Logger.Info("Redis runs in this process and ends with it; name one by --redis ADDR")
	o.Addrs = []string{server.Addr()}
	return o, nil
}

// openFilters opens the service's sets in Redis, or makes them. Sets that are new or were lost are loaded in the
// background; until then they say "maybe" with an error. With f.Rebuild all are loaded before openFilters returns.
func (p *parts) openFilters(ctx context.Context, f flags, o *redis.UniversalOptions) error {
	opening, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	client, err := redisfilter.Open(opening, o)
	if err != nil {
		return fmt.Errorf("%w; is Redis there?", err)
	}
	p.onClose(client.Close)
	name := func(of string) string { return of + "-" + p.Store.Instance } // another database has other sets
	options := func(source redisfilter.Source) *redisfilter.Options {
		return &redisfilter.Options{Source: source, Grace: f.Grace, Timeout: f.RedisTimeout, Logger: p.Logger}
	}
	growing := func(of string, source redisfilter.Source) (*redisfilter.Set, guard.Set, error) {
		o := options(source)
		o.Growth = growth
		s, err := redisfilter.New(opening, client, name(of), f.Capacity, f.Rate, o)
		if err != nil {
			return nil, nil, err
		}
		p.onClose(s.Close)
		if !f.Mirror {
			return s, s, nil
		}
		mirror, err := s.Mirror(opening, nil)
		if err != nil {
			return nil, nil, err
		}
		p.onClose(mirror.Close)
		return s, mirror, nil
	}
	users, askUsers, failed := growing("users", p.Store.IDs)
	names, askNames, err := growing("names", p.Store.Names)
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	banned, err := redisfilter.NewCuckoo(opening, client, name("banned"), f.Bans, banRate, options(p.Store.BannedIDs))
	if err != nil {
		return err
	}
	p.onClose(banned.Close)
	p.Filters = guard.Filters{
		Users: askUsers, Names: askNames, Banned: banned,
		Metrics: map[string]func() redisfilter.Metrics{
			"users": users.Metrics, "names": names.Metrics, "banned": banned.Metrics,
		},
	}
	if !f.Rebuild {
		return nil
	}
	p.Logger.Info("the filters are loaded again")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return users.Load(ctx, nil) })
	group.Go(func() error { return names.Load(ctx, nil) })
	group.Go(func() error { return banned.Load(ctx, nil) })
	return group.Wait()
}
