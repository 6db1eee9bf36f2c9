// Package mirror answers for a redisfilter.Set out of a copy of its bits in the process. Set.Mirror makes one.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/copies"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// A Mirror answers for a Set out of a copy of its bits in the process, without a trip to Redis. What the copy cannot
// answer it asks the Set. It is for any number of goroutines.
//
// What is promised: a key that was added is not absent for the Mirror.
//   - If it was added through this Mirror, that holds from the moment when Add returned.
//   - If it was added through the Set or in another process, that holds from a Lease after that Add
//     returned: one second, unless Options say otherwise.
//
// What is not promised is that the keys of others are seen before the Lease is over. For so long a Mirror may say
// "no" where the Set would say "maybe". Where that does harm, as to a program that has just heard of the key from
// another process, ask the Set. All else is as the Set promises it: after a loss or a failover, and while Redis is
// away, the answer is "maybe" with the Set's error. A Mirror learns of a loss within the Lease, and of a failover
// when the Set does. That Redis is away it need not tell: keys whose bits were seen may be in the set in any case.
//
// "Maybe" takes no trip if the copy has the key's bits, as bits are never cleared. "No" takes one if the key's shard
// was changed and not fetched again since, which happens after a Poll, or after a Refresh if the shard was fetched
// just before. At 100 adds per second and 3,100 shards, which hold 10,000,000 keys at 1 %, that is 0.3 % of the
// answers, as 1 - exp(-adds per second * Poll / shards) lets expect.
//
// A Mirror costs the memory of the set, 1.3 bytes per key at 1 %, and a connection to each master, which remembers
// what was read through it (CLIENT TRACKING). A shard that was changed costs a fetch of 4 KB, at most once per
// Refresh. A set to which thousands of keys are added every second is better asked in Redis. Where the server has no
// CLIENT TRACKING, as that of package inprocess, a Mirror asks the Set everything, and Ready fails.
type Mirror struct {
	set     copies.Set
	inside  copies.Inside
	options Options
	table   atomic.Pointer[table]     // nil: ask the Set
	servers map[string]*copies.Server // by identity; the background alone uses it
	budget  copies.Budget             // of the copies
	tallies [tallyStripes]tally
	quit    context.CancelFunc
	ended   chan struct{}
}

// Options are what Set.Mirror may be told; zero values are the defaults.
type Options struct {
	// Lease is the most time that others' keys take to be seen. The default is 1 s.
	Lease time.Duration

	// Refresh is the least time between two readings of a shard that changes. The default is 1 s.
	Refresh time.Duration

	// Poll is the time between two questions to a server about what changed. The default is 100 ms, and at most a
	// quarter of Lease.
	Poll time.Duration

	// MaxBytes bounds the memory of the copies. Partitions beyond it are asked in Redis. The default is 1 GB.
	MaxBytes int64
}

// New is for Set.Mirror, which programs call: no package outside has the set that it takes.
func New(ctx context.Context, set copies.Set, o *Options) (*Mirror, error) {
	if o == nil {
		o = &Options{}
	}
	if o.Lease < 0 || o.Refresh < 0 || o.Poll < 0 || o.MaxBytes < 0 {
		return nil, errors.New("redisfilter: Lease, Refresh, Poll and MaxBytes of a mirror must not be negative")
	}
	r := &Mirror{
		set: set, inside: set.Inside(), options: *o, servers: map[string]*copies.Server{}, ended: make(chan struct{}),
	}
	if err := ctx.Err(); err != nil {
		return nil, r.wrap(err)
	}
	r.budget.Max = cmp.Or(o.MaxBytes, 1<<30)
	ctx, r.quit = context.WithCancel(context.Background())
	go r.follow(ctx)
	return r, nil
}

func (r *Mirror) wrap(err error) error { return r.inside.Conn.Wrap(r.inside.Name, err) }

// Close ends the connections and gives the copies up. The Mirror then asks the Set everything.
func (r *Mirror) Close() error {
	r.quit()
	<-r.ended
	return nil
}

// Contains reports whether a key may have been added; false is certain, as far as Mirror promises.
func (r *Mirror) Contains(ctx context.Context, key []byte) (bool, error) {
	if t := r.table.Load(); t != nil {
		if maybe, ok := r.answer(t, t.parts.Hash(key)); ok {
			return maybe, nil
		}
	}
	return r.set.Contains(ctx, key)
}

// MContains is Contains for many keys. Those that need a trip share one to each node.
func (r *Mirror) MContains(ctx context.Context, keys [][]byte) ([]bool, error) {
	t := r.table.Load()
	if t == nil {
		return r.set.MContains(ctx, keys)
	}
	maybe := make([]bool, len(keys))
	var rest [][]byte
	var at []int
	for i, key := range keys {
		var ok bool
		if maybe[i], ok = r.answer(t, t.parts.Hash(key)); !ok {
			rest, at = append(rest, key), append(at, i)
		}
	}
	if len(rest) == 0 {
		return maybe, nil
	}
	answers, err := r.set.MContains(ctx, rest)
	for i, answer := range answers {
		maybe[at[i]] = answer
	}
	return maybe, err
}

// Add adds a key to the Set, as Set.Add does. This Mirror knows it at once.
func (r *Mirror) Add(ctx context.Context, key []byte) error {
	err := r.set.Add(ctx, key)
	r.added(key)
	return err
}

// AddNew adds a key to the Set and reports whether it was new, as Set.AddNew does. This Mirror knows it at once.
func (r *Mirror) AddNew(ctx context.Context, key []byte) (bool, error) {
	fresh, err := r.set.AddNew(ctx, key)
	r.added(key)
	return fresh, err
}

// MAdd is Add for many keys.
func (r *Mirror) MAdd(ctx context.Context, keys [][]byte) error {
	err := r.set.MAdd(ctx, keys)
	r.added(keys...)
	return err
}

// MAddNew is AddNew for many keys.
func (r *Mirror) MAddNew(ctx context.Context, keys [][]byte) ([]bool, error) {
	fresh, err := r.set.MAddNew(ctx, keys)
	r.added(keys...)
	return fresh, err
}

// added sets the bits of keys that are in Redis. If an add failed they may not be, which makes another "maybe" and no
// wrong "no".
func (r *Mirror) added(keys ...[]byte) {
	t := r.table.Load()
	if t == nil {
		return
	}
	for _, key := range keys {
		t.Add(t.parts.Hash(key))
	}
}

// answer says whether the key of a hash may be in the set; ok is false if only Redis knows.
func (r *Mirror) answer(t *table, h uint64) (maybe, ok bool) {
	counts := &r.tallies[h%tallyStripes]
	v := r.set.View()
	if v.Config != t.cfg {
		counts.asked.Add(1)
		return true, false
	}
	switch t.Ask(h) {
	case layout.Present:
		counts.yes.Add(1)
		return true, true
	case layout.Absent:
		if v.Err == nil && r.inside.Conn.Watch.Valid(t.confirmed) {
			counts.no.Add(1)
			return false, true
		}
	}
	counts.asked.Add(1)
	return true, false
}

// A tally counts answers. There are several, on cache lines of their own, so that goroutines seldom wait for each
// other.
type tally struct {
	yes, no, asked atomic.Uint64
	_              [40]byte
}

const tallyStripes = 16

// Stats say what a Mirror did and has.
type Stats struct {
	Yes   uint64 // answers "maybe" without a trip
	No    uint64 // answers "no" without a trip
	Asked uint64 // questions to the Set

	Unknown int   // shards that were not fetched yet
	Clean   int   // shards whose copies are as they are in Redis
	Dirty   int   // shards that were changed and not fetched again since
	Lost    int   // shards that are missing in Redis, or are none
	Bytes   int64 // of the copies

	Fetches     uint64 // shards that were fetched
	Connections int    // to masters, on which something is known now

	Err error // why there is no connection to one of the masters
}

// Stats returns figures since the Mirror began. It takes some microseconds per thousand shards.
func (r *Mirror) Stats() Stats {
	var s Stats
	for i := range r.tallies {
		s.Yes += r.tallies[i].yes.Load()
		s.No += r.tallies[i].no.Load()
		s.Asked += r.tallies[i].asked.Load()
	}
	t := r.table.Load()
	if t == nil {
		return s
	}
	for _, m := range t.servers {
		of := m.Stats()
		s.Clean += of.Clean
		s.Unknown += of.Unknown
		s.Dirty += of.Dirty
		s.Lost += of.Lost
		s.Bytes += int64(of.Bytes)
		s.Fetches += of.Fetches
		if of.Leased {
			s.Connections++
		}
		if of.Err != nil {
			s.Err = r.wrap(of.Err)
		}
	}
	return s
}

// Ready waits until the Mirror has a copy of every shard that is in Redis and within MaxBytes, or returns why it has
// not when ctx ends. There is no need to call it: until then the Set is asked.
func (r *Mirror) Ready(ctx context.Context) error {
	for !r.filled() {
		select {
		case <-r.ended:
			return r.wrap(conn.ErrClosed)
		case <-r.inside.Conn.Watch.Ended():
			return r.wrap(conn.ErrClosed)
		default:
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return r.wrap(errors.Join(ctx.Err(), r.Stats().Err))
		}
	}
	return nil
}

func (r *Mirror) filled() bool {
	t := r.table.Load()
	if t == nil || r.set.View().Config != t.cfg {
		return false
	}
	t.CatchUp()
	s := r.Stats()
	return s.Unknown == 0 && s.Connections == len(t.servers) && s.Clean+s.Dirty+s.Lost > 0
}
