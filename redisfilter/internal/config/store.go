package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// A Stored is where the configuration of a named set is kept.
type Stored struct {
	Conn *conn.Conn
	Name string
}

// tombstone is how long a dropped set is remembered, for processes that still use it.
const tombstone = time.Hour

// MaxName keeps Redis keys short; a name is a part of each.
const MaxName = 200

// CheckName refuses a name that keys of Redis cannot have.
func (s Stored) CheckName() error {
	if s.Name == "" || len(s.Name) > MaxName || strings.ContainsAny(s.Name, "{} \t\r\n") {
		return fmt.Errorf("redisfilter: %q is no name of a set: 1 to %d bytes, no braces, no spaces", s.Name, MaxName)
	}
	return nil
}

// Key is the key of the configuration.
func (s Stored) Key() string { return layout.ConfigKey(s.Name) }

// Read returns the configuration, that of a dropped set too, nil if there is none.
func (s Stored) Read(ctx context.Context) (*Config, error) {
	data, err := s.Conn.RDB.Get(ctx, s.Key()).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.decode(data)
}

func (s Stored) decode(data []byte) (*Config, error) {
	c, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", conn.ErrForeign, s.Key(), err)
	}
	return c, nil
}

// Accept returns the configuration of some bytes, or says why a program that asked for r cannot use the set.
func (s Stored) Accept(data []byte, r Request) (*Config, error) {
	c, err := s.decode(data)
	if err != nil {
		return nil, err
	}
	if c.Dropped {
		return nil, conn.ErrDropped
	}
	if differs := c.Asked.Unlike(r); differs != "" {
		return nil, fmt.Errorf("%w: %s differs: there is %v, asked for was %v", conn.ErrMismatch, differs, c.Asked, r)
	}
	return c, nil
}

// Swap replaces the configuration if it still is what it was, nil for none, and says whether it did.
func (s Stored) Swap(ctx context.Context, old, next *Config) (swapped bool, err error) {
	if old == nil {
		set := redis.NewBoolCmd(ctx, "setnx", s.Key(), next.Encode())
		s.Conn.Run(ctx, conn.Once{Cmder: set})
		return set.Result()
	}
	ttl := time.Duration(0)
	if next.Dropped {
		ttl = tombstone
	}
	err = s.Conn.RDB.Watch(ctx, func(tx *redis.Tx) error {
		data, err := tx.Get(ctx, s.Key()).Bytes()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if string(data) != string(old.Encoded) {
			return redis.TxFailedErr
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, s.Key(), next.Encode(), ttl)
			return nil
		})
		return err
	}, s.Key())
	if errors.Is(err, redis.TxFailedErr) {
		return false, nil
	}
	return err == nil, err
}

// Drop replaces the configuration by a tombstone, if it still is what it was, and says whether it did.
func (s Stored) Drop(ctx context.Context, old *Config) (swapped bool, err error) {
	return s.Swap(ctx, old, &Config{Version: Version, Dropped: true})
}
