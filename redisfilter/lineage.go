package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// A lineage is the generations of a named set, one after the other. A generation is all the values
// that hold the set's keys at a time. A set that is new, or lost some of its values, gets its next
// generation from a load, and goes over to it while other processes ask and add.
//
//	Generation  answers lookups
//	Building    gets adds as well, while a load fills it
//	Retiring    answered lookups until the last load, and still gets adds for those who have not heard
//
// Adds go to all that the configuration names, and count once they know that it still names no others.
type lineage struct {
	lifecycle
	client *Client
	name   string
	asked  request
	open   func(*config) content // of a configuration that was checked

	view   atomic.Pointer[view]
	lost   atomic.Pointer[string]    // a generation that was seen to have lost something
	stray  atomic.Pointer[stray]     // what look found last
	whole  atomic.Pointer[time.Time] // when all servers were trusted last
	repair chan struct{}
	quit   context.CancelFunc
	ended  sync.WaitGroup
	closed atomic.Bool
	pace   pace

	tallies tallies
}

// A content is how the keys of a generation lie in Redis: what kinds of sets differ in.
type content interface {
	// blank makes the values of a generation that nobody else knows yet, empty and whole.
	blank(ctx context.Context, generation string) error

	// insert adds keys to one generation.
	insert(ctx context.Context, generation string, hashes []uint64) error

	// bulk returns functions that add many keys to one generation: each call of add takes some, and
	// all are there after finish.
	bulk(generation string) (add insert, finish func(context.Context) error)

	// check returns ErrIncomplete if a value of the generation is not whole.
	check(ctx context.Context, generation string) error

	// discard removes the values of a generation.
	discard(ctx context.Context, generation string) error

	// hash is what the set knows of a key.
	hash(key []byte) uint64
}

// An insert adds keys.
type insert func(ctx context.Context, hashes []uint64) error

// tombstone is how long a dropped set is remembered, for processes that still use it.
const tombstone = time.Hour

// start finds the configuration or makes it, and begins to watch it. The fresh configuration is
// used if there is none.
func (l *lineage) start(ctx context.Context, fresh *config) error {
	if err := checkName(l.name); err != nil {
		return err
	}
	if err := l.complete(); err != nil {
		return err
	}
	patient := ctx
	ctx, cancel := l.deadline(ctx)
	defer cancel()
	l.view.Store(&view{})
	l.repair = make(chan struct{}, 1)
	if fresh.Asked.Kind != kindWindows {
		fresh.Grace = l.grace
	}
	if err := l.create(ctx, fresh); err != nil {
		return l.client.wrap(l.name, err)
	}
	l.refresh(ctx)
	if err := l.agree(ctx, l.asked.Keys); err != nil {
		return l.client.wrap(l.name, err)
	}
	l.client.watch.Add(poller{l})
	run, quit := context.WithCancel(context.Background())
	l.quit = quit
	l.ended.Go(func() { l.repairs(run) })
	l.ended.Go(func() { l.keepLooking(run, firstLook()) })
	l.repairSoon()
	_ = l.view.Load().await(patient) // else the first adds do
	return nil
}

// create makes the configuration unless there is one, or was one and it was dropped. A set that may
// start empty begins with a generation.
func (l *lineage) create(ctx context.Context, fresh *config) error {
	key := layout.ConfigKey(l.name)
	data, err := l.client.rdb.Get(ctx, key).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
	case err != nil:
		return err
	default:
		old, err := decodeConfig(data)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrForeign, key, err)
		}
		if !old.Dropped {
			return nil
		}
	}
	if l.startEmpty && fresh.Asked.Kind != kindWindows {
		v := &view{cfg: fresh, content: l.open(fresh)}
		if fresh.Generation, _, err = l.makeBlank(ctx, v); err != nil {
			return err
		}
	}
	made, err := l.swap(ctx, data, fresh)
	if err == nil && !made && fresh.Generation != "" { // somebody was faster
		err = l.discard(ctx, fresh.Generation, l.open(fresh))
	}
	return err
}

// trust says that a generation is whole under the identities.
func (l *lineage) trust(ctx context.Context, generation string, identities []string) error {
	members := make([]any, len(identities))
	for i, id := range identities {
		members[i] = id
	}
	return l.client.rdb.SAdd(ctx, trustedKey(l.name, generation), members...).Err()
}

// swap replaces the configuration if it still is what it was, nil for none, and says whether it did.
func (l *lineage) swap(ctx context.Context, old []byte, next *config) (swapped bool, err error) {
	key := layout.ConfigKey(l.name)
	if old == nil {
		set := redis.NewBoolCmd(ctx, "setnx", key, next.encode())
		l.client.run(ctx, once{set})
		return set.Result()
	}
	ttl := time.Duration(0)
	if next.Dropped {
		ttl = tombstone
	}
	err = l.client.rdb.Watch(ctx, func(tx *redis.Tx) error {
		data, err := tx.Get(ctx, key).Bytes()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if string(data) != string(old) {
			return redis.TxFailedErr
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, key, next.encode(), ttl)
			return nil
		})
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return false, nil
	}
	return err == nil, err
}

// publish changes the configuration from what cfg says and returns what it is then. That another
// process agreed with the others in between does not matter.
func (l *lineage) publish(ctx context.Context, cfg *config, change func(*config)) (*config, error) {
	for {
		next := *cfg
		change(&next)
		swapped, err := l.swap(ctx, cfg.encoded, &next)
		if err != nil {
			return nil, err
		}
		l.refresh(ctx)
		if swapped {
			next.encoded = next.encode()
			return &next, nil
		}
		now := l.view.Load().cfg
		agreed := now.Grace > cfg.Grace || now.Wanted > cfg.Wanted
		if !agreed || !now.sameShape(cfg) || !slices.Equal(now.generations(), cfg.generations()) {
			return nil, fmt.Errorf("%w: another process changed the configuration", errStale)
		}
		cfg = now
	}
}

// close ends what runs in the background.
func (l *lineage) close() {
	if l.closed.Swap(true) {
		return
	}
	l.client.watch.Remove(poller{l})
	l.quit()
	l.ended.Wait()
}

// current returns the view to work with.
func (l *lineage) current() (*view, error) {
	if l.closed.Load() {
		return nil, ErrClosed
	}
	v := l.view.Load()
	return v, v.usable()
}

// load builds a generation.
func (l *lineage) load(ctx context.Context, source Source) error {
	if _, err := l.current(); err != nil {
		return err
	}
	if source == nil {
		source = l.source
	}
	if source == nil && !l.startEmpty {
		return programError{errors.New("a load needs a source: without keys the set would say no to all")}
	}
	return l.locked(ctx, func(ctx context.Context) error {
		l.refresh(ctx)
		if l.view.Load().err != nil { // the configuration was lost, and is back
			l.refresh(ctx)
		}
		return l.loadLocked(ctx, source)
	})
}

// ready waits until all masters may say no.
func (l *lineage) ready(ctx context.Context) error {
	for {
		changed := l.client.watch.Changed()
		v, err := l.current()
		if err != nil {
			return err
		}
		switch {
		case v.err != nil:
			err = v.err
		case l.need(v) == load, l.need(v) == keys:
			err = ErrIncomplete
			l.repairSoon()
		default:
			return nil
		}
		select {
		case <-changed:
		case <-l.client.watch.Ended():
			return ErrClosed
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
