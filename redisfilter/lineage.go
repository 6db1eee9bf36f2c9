package redisfilter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/redisfilter/internal/chain"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// A lineage is the generations of a named set, one after the other. A generation is all the values that hold the
// set's keys at a time. A set that is new, or lost some of its values, gets its next generation from a load, and goes
// over to it while other processes ask and add.
//
//	Generation  answers lookups
//	Building    gets adds as well, while a load fills it
//	Retiring    answered lookups until the last load, and still gets adds for processes that have not heard
//
// Adds go to all that the configuration names, and count once they know that it still names no others.
type lineage struct {
	options Options
	client  *conn.Conn
	name    string
	asked   config.Request

	view   atomic.Pointer[view]
	lost   atomic.Pointer[string]    // a generation that was seen to have lost something
	stray  atomic.Pointer[stray]     // what look found last
	whole  atomic.Pointer[time.Time] // when all servers were trusted last
	repair chan struct{}
	quit   context.CancelFunc
	ended  sync.WaitGroup
	closed atomic.Bool
	pace   pace

	losses, failedLoads atomic.Uint64
	full                atomic.Pointer[string] // the generation that refused a key last
}

// A content is how the keys of a generation lie in Redis: what kinds of sets differ in.
type content interface {
	// Hash is what the set knows of a key.
	Hash(key []byte) uint64

	// Slots returns the slot that each key is in, in every generation.
	Slots(hashes []uint64) []int

	// Ask looks keys up in a generation, in as few trips as it can. Where it cannot say, the answer is lost; an error
	// then says why, unless a value is just not there.
	Ask(ctx context.Context, generation string, hashes []uint64) ([]layout.Answer, error)

	// put adds keys to a generation and notes what it found. It says whether all was whole.
	put(ctx context.Context, generation string, inUse bool, a *addition) (whole bool, err error)

	// Insert adds keys to one generation.
	Insert(ctx context.Context, generation string, hashes []uint64) error

	// Bulk returns functions that add many keys to one generation: each call of add takes some, and all are there
	// after finish.
	Bulk(generation string) (add chain.Insert, finish func(context.Context) error)

	// Blank makes the values of a generation that no other process knows yet, empty and whole.
	Blank(ctx context.Context, generation string) error

	// survey calls f with each shard of a generation. To count keys takes most of its time.
	survey(ctx context.Context, generation string, count bool, f func(shard) error) error

	// Discard removes the values of a generation.
	Discard(ctx context.Context, generation string) error
}

// start finds the configuration or makes it as asked, and begins to watch it. o may be nil.
func (l *lineage) start(ctx context.Context, c *Client, name string, asked config.Request, o *Options) error {
	l.client, l.name = conn.Of(c), name
	if o != nil {
		l.options = *o
	}
	o = &l.options
	asked.Growth, asked.PublicHash = o.Growth, o.PublicHash
	asked.Partitions, asked.ShardBytes = o.Partitions, o.ShardBytes
	fresh, err := config.New(asked)
	if err = cmp.Or(err, l.stored().CheckName(), o.complete()); err != nil {
		return err
	}
	l.asked, fresh.Grace = fresh.Asked, o.Grace
	patient := ctx
	ctx, cancel := l.deadline(ctx)
	defer cancel()
	l.view.Store(&view{})
	l.repair = make(chan struct{}, 1)
	if err := l.create(ctx, fresh); err != nil {
		return l.wrap(err)
	}
	l.refresh(ctx)
	if err := l.agree(ctx, l.asked.Keys); err != nil {
		return l.wrap(err)
	}
	l.client.Watch.Add(poller{l})
	run, quit := context.WithCancel(context.Background())
	l.quit = quit
	l.ended.Go(func() { l.repairs(run) })
	l.ended.Go(func() { l.keepLooking(run, conn.FirstLook()) })
	l.repairSoon()
	_ = l.view.Load().await(patient) // else the first adds do
	return nil
}

// stored is where the configuration is kept.
func (l *lineage) stored() config.Stored { return config.Stored{Conn: l.client, Name: l.name} }

// wrap says of which set an error is.
func (l *lineage) wrap(err error) error { return l.client.Wrap(l.name, err) }

func (l *lineage) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return conn.Deadline(ctx, l.options.Timeout)
}

// create makes the configuration unless there is one, or was one and it was dropped. A set that may start empty
// begins with a generation.
func (l *lineage) create(ctx context.Context, fresh *config.Config) error {
	old, err := l.stored().Read(ctx)
	if err != nil || old != nil && !old.Dropped {
		return err
	}
	if l.options.StartEmpty {
		v := &view{cfg: fresh, content: l.open(fresh)}
		if fresh.Generation, _, err = l.makeBlank(ctx, v); err != nil {
			return err
		}
	}
	made, err := l.stored().Swap(ctx, old, fresh)
	if err == nil && !made && fresh.Generation != "" { // another process was faster
		err = l.discard(ctx, fresh.Generation, l.open(fresh))
	}
	return err
}

// open returns the content of a configuration that was checked.
func (l *lineage) open(cfg *config.Config) content {
	if cfg.Asked.Kind == config.KindCuckoo {
		return newTables(l.client, l.name, cfg)
	}
	return partitions{chain.NewParts(l.client, l.name, cfg)}
}

// trust says that a generation is whole under the identities.
func (l *lineage) trust(ctx context.Context, generation string, identities []string) error {
	members := make([]any, len(identities))
	for i, id := range identities {
		members[i] = id
	}
	return l.client.RDB.SAdd(ctx, trustedKey(l.name, generation), members...).Err()
}

// publish changes the configuration from what cfg says and returns what it is then. That another process agreed with
// the others in between does not matter.
func (l *lineage) publish(ctx context.Context, cfg *config.Config,
	change func(*config.Config)) (*config.Config, error) {
	for {
		next := *cfg
		change(&next)
		swapped, err := l.stored().Swap(ctx, cfg, &next)
		if err != nil {
			return nil, err
		}
		l.refresh(ctx)
		if swapped {
			next.Encoded = next.Encode()
			return &next, nil
		}
		now := l.view.Load().cfg
		agreed := now.Grace > cfg.Grace || now.Wanted > cfg.Wanted
		if !agreed || !now.SameShape(cfg) || !slices.Equal(now.Generations(), cfg.Generations()) {
			return nil, fmt.Errorf("%w: another process changed the configuration", errStale)
		}
		cfg = now
	}
}

// Close ends what the set does in the background. What is in Redis stays.
func (l *lineage) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.client.Watch.Remove(poller{l})
	l.quit()
	l.ended.Wait()
	return nil
}

func (l *lineage) current() (*view, error) {
	if l.closed.Load() {
		return nil, ErrClosed
	}
	v := l.view.Load()
	return v, v.usable()
}

// Load makes the set again out of a source and takes it into use, while all processes go on to ask and add. It loads a
// set for the first time and after a loss, and removes keys that are no longer in the database. A nil source stands
// for Options.Source, and is an error if there is none.
//
// It takes 1.5 s, Options.Grace and the time of the source until the set is in use: 4.5 s by default. Three seconds
// more remove the one that was in use before. A Cuckoo takes another Options.Grace. While it runs there are two sets
// in Redis. The keys of the source are gathered in memory, as much as the set has in Redis, or eight bytes for each
// key if the set grows. The error of a source is returned, and the set stays as it was. Loads of a set wait for each
// other, in whatever process they run. What a load leaves in Redis that is broken off, or whose process ends, is
// removed within seconds by any process that has the set open.
func (l *lineage) Load(ctx context.Context, source Source) error {
	if _, err := l.current(); err != nil {
		return l.wrap(err)
	}
	if source == nil {
		source = l.options.Source
	}
	if source == nil && !l.options.StartEmpty {
		return l.wrap(conn.ProgramError{
			Cause: errors.New("a load needs a source: without keys the set would say no to all"),
		})
	}
	return l.wrap(l.locked(ctx, func(ctx context.Context) error {
		l.refresh(ctx)
		if l.view.Load().err != nil { // the configuration was lost, and is back
			l.refresh(ctx)
		}
		return l.loadLocked(ctx, source)
	}))
}

// Ready waits until the set can say no, or returns why it cannot when ctx ends.
func (l *lineage) Ready(ctx context.Context) error {
	for {
		changed := l.client.Watch.Changed()
		v, err := l.current()
		if err != nil {
			return l.wrap(err)
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
		case <-l.client.Watch.Ended():
			return l.wrap(ErrClosed)
		case <-ctx.Done():
			return l.wrap(errors.Join(err, ctx.Err()))
		}
	}
}
