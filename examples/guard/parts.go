package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/examples/guard/internal/cache"
	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
	"github.com/siftkv/siftkv/examples/guard/internal/users"
)

// spareConns are connections to the database beyond those of requests: for scans
// that fill filters, and for the check of its health.
const spareConns = 4

// parts is what a service stands on, and what ends with it.
type parts struct {
	guard.Parts
	db      *users.Store // which is guard.Parts' Store
	closers []func() error
}

// onClose adds what is to be done at the end, last first.
func (p *parts) onClose(f func() error) { p.closers = append(p.closers, f) }

// onEnd is onClose for what asks a server.
func (p *parts) onEnd(ctx context.Context, f func(context.Context) error) {
	p.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		return f(ctx)
	})
}

// Close ends all parts in the opposite order of their beginning.
func (p *parts) Close() error {
	var errs []error
	for _, f := range slices.Backward(p.closers) {
		errs = append(errs, f())
	}
	p.closers = nil
	return errors.Join(errs...)
}

// openParts opens the database, then Redis, then the filters, which are built from
// the database.
func openParts(ctx context.Context, f flags, log *slog.Logger) (*parts, error) {
	p := &parts{Parts: guard.Parts{Counters: stats.New(), Logger: log}}
	if err := p.open(ctx, f); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *parts) open(ctx context.Context, f flags) error {
	if err := p.openStore(ctx, f); err != nil {
		return err
	}
	seeded, err := p.seed(ctx, f.Users)
	if err != nil {
		return err
	}
	options, err := p.redisOptions(f)
	if err != nil {
		return err
	}
	client := redis.NewUniversalClient(options)
	p.onClose(client.Close)
	p.Cache = cache.New(client, cache.Config{
		Prefix: "guard:" + p.db.Instance() + ":", TTL: f.CacheTTL, NullTTL: f.NullTTL, Timeout: f.RedisTimeout,
	})
	if f.outlived() {
		p.onEnd(ctx, p.Cache.Clear)
	}
	// Of users that were made in old data, filters that are there were told nothing.
	f.Rebuild = f.Rebuild || seeded && !p.db.Fresh()
	return p.openFilters(ctx, f, options)
}

// openStore opens the database.
func (p *parts) openStore(ctx context.Context, f flags) (err error) {
	if f.Postgres != "" {
		p.db, err = users.OpenPostgres(ctx, f.Postgres, f.DBConns+spareConns, f.Timeout)
	} else {
		p.db, err = p.openSQLite(ctx, f.Data)
	}
	if err == nil {
		p.Store = p.db
		p.onClose(p.db.Close)
	}
	return err
}

func (p *parts) openSQLite(ctx context.Context, dir string) (*users.Store, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the directory of the database: %w", err)
		}
		return users.OpenSQLite(ctx, dir)
	}
	dir, err := os.MkdirTemp("", "guard-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the database: %w; name one by --data", err)
	}
	p.onClose(func() error { return os.RemoveAll(dir) })
	p.Logger.Info("the database is SQLite and ends with this process; keep one by --data DIR or --postgres URL")
	return users.OpenSQLite(ctx, dir)
}

// seed makes the first users and reports whether some were missing.
func (p *parts) seed(ctx context.Context, n int) (bool, error) {
	began := time.Now()
	added, err := p.db.Seed(ctx, n)
	if err == nil && added > 0 {
		p.Logger.Info("made users", "users", added, "took", time.Since(began).Round(time.Millisecond))
	}
	return added > 0, err
}
