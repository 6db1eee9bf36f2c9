// Package cache keeps answers of the database in Redis: values for a while, and
// for a short while that there is none, so that a key which a filter takes for
// present does not ask the database again and again.
//
// Readers fill and writers put. A fill never replaces an entry, so a reader that
// asked the database before a write and fills after it cannot hide what was
// written.
package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// State is what the cache knows of a key.
type State int

// What Get may find.
const (
	Missing State = iota // nothing is known; ask the database
	Null                 // the database had no such row
	Found                // the value is the database's
)

// Entries begin with a byte that tells a value from its absence, so that an
// empty value is no null.
const (
	foundMark = '+'
	nullMark  = '-'
)

// ErrForeign is wrapped by the error for an entry that this package did not write.
var ErrForeign = errors.New("an entry that is not ours")

// Config is a cache's configuration.
type Config struct {
	Prefix  string        // of all keys, so that services and databases do not meet
	TTL     time.Duration // of values, within a tenth, lest all expire together
	NullTTL time.Duration // of nulls
	Timeout time.Duration // of one operation
}

// Cache is a cache in Redis. It may be used from many goroutines.
type Cache struct {
	redis  redis.UniversalClient
	config Config
}

// New returns a cache on a client, which stays the caller's to close.
func New(client redis.UniversalClient, c Config) *Cache { return &Cache{redis: client, config: c} }

// Get returns what is known of a key. With an error nothing is known: the state is
// Missing.
func (c *Cache) Get(ctx context.Context, key string) (string, State, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	key = c.config.Prefix + key
	entry, err := c.redis.Get(ctx, key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", Missing, nil
	case err != nil:
		return "", Missing, fmt.Errorf("cache: read %q: %w", key, err)
	case entry == string(nullMark):
		return "", Null, nil
	case entry != "" && entry[0] == foundMark:
		return entry[1:], Found, nil
	}
	return "", Missing, fmt.Errorf("cache: %q holds %.16q: %w; delete it, or give the service a prefix of its own",
		key, entry, ErrForeign)
}

// Fill keeps what a reader got from the database, unless there is an entry.
func (c *Cache) Fill(ctx context.Context, key, value string, found bool) error {
	return c.set(ctx, key, value, found, "NX")
}

// Put keeps what a writer wrote to the database, whatever there is.
func (c *Cache) Put(ctx context.Context, key, value string, found bool) error {
	return c.set(ctx, key, value, found, "")
}

func (c *Cache) set(ctx context.Context, key, value string, found bool, mode string) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	entry, ttl := string(nullMark), c.config.NullTTL
	if found {
		entry, ttl = string(foundMark)+value, spread(c.config.TTL)
	}
	key = c.config.Prefix + key
	err := c.redis.SetArgs(ctx, key, entry, redis.SetArgs{Mode: mode, TTL: ttl}).Err()
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: NX found an entry
		return fmt.Errorf("cache: write %q: %w", key, err)
	}
	return nil
}

// spread returns a time within a tenth of d.
func spread(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)/5*float64(d))
}
