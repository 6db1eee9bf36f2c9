package guard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/siftkv/siftkv/redisfilter"
)

// Set is a filter that keys are added to.
type Set interface {
	Add(ctx context.Context, key []byte) error
	// Contains returns false only of a key that was never added. With an error the
	// answer is true.
	Contains(ctx context.Context, key []byte) (bool, error)
	// Ready waits until Contains can answer without an error.
	Ready(ctx context.Context) error
}

// Multiset is a Set that counts how often a key was added, and takes one back.
type Multiset interface {
	Set
	// Remove must be called only for a key that was added.
	Remove(ctx context.Context, key []byte) (bool, error)
	Metrics() redisfilter.Metrics
}

// Seen are the items that one user saw.
type Seen interface {
	MContains(ctx context.Context, keys [][]byte) ([]bool, error)
	// MAddNew adds keys and tells which were new.
	MAddNew(ctx context.Context, keys [][]byte) ([]bool, error)
}

// Filters are the sets of the service.
type Filters struct {
	Users, Names Set
	Banned       Multiset
	Feed         func(owner string) Seen
	Metrics      map[string]func() redisfilter.Metrics // of the sets in Redis, by the names of the filters
}

// Ready waits until all sets can answer.
func (f *Filters) Ready(ctx context.Context) error {
	return errors.Join(f.Users.Ready(ctx), f.Names.Ready(ctx), f.Banned.Ready(ctx))
}

// takesBans returns why the black list takes no bans, as far as this process knows. A server that is away is
// no reason: a service that fails open does without.
func (f *Filters) takesBans() error {
	switch m := f.Banned.Metrics(); {
	case m.Full:
		return fmt.Errorf("the black list: %w", redisfilter.ErrFull)
	case !m.Loaded:
		return fmt.Errorf("the black list: %w", redisfilter.ErrIncomplete)
	}
	return nil
}

// Switch turns the filters of identifiers and of names off and on. While they are
// off every key is "maybe"; sign-ups add to them all the same, so they may be turned
// on at any time. Its zero value is on.
type Switch struct{ off atomic.Bool }

// On reports whether the filters are on.
func (s *Switch) On() bool { return !s.off.Load() }

// Set turns them on or off.
func (s *Switch) Set(on bool) { s.off.Store(!on) }
