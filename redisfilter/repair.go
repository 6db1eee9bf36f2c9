package redisfilter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// repairSoon asks the background to look whether the set needs a load.
func (l *lineage) repairSoon() {
	select {
	case l.repair <- struct{}{}:
	default:
	}
}

// missing notes that a value of a generation is not there, or not whole.
func (l *lineage) missing(generation string) error {
	if old := l.lost.Swap(&generation); old == nil || *old != generation {
		l.losses.Add(1)
		rest := l.pace.lost(generation, time.Now())
		l.options.Logger.Warn("a set lost keys", "set", l.name, "generation", generation, "load_in", rest)
	}
	l.repairSoon()
	return fmt.Errorf("%w: a part of it was lost", ErrIncomplete)
}

// noticed reacts to a new view.
func (l *lineage) noticed(now *view) {
	if now.usable() != nil {
		return
	}
	l.pace.uses(now.cfg.Generation, time.Now())
	if len(l.untrusted(now)) != 0 || now.cfg.Generation == "" || now.cfg.Building+now.cfg.Retiring != "" {
		l.repairSoon()
		return
	}
	if l.need(now) != nothing { // such as a load that rested
		l.repairSoon()
	}
	whole := l.client.Watch.Map().Confirmed()
	if now.confirmed.Before(whole) {
		whole = now.confirmed
	}
	l.whole.Store(&whole)
}

// untrusted returns the identities of masters that the generation in use is not known to be whole on.
func (l *lineage) untrusted(v *view) (all []string) {
	identities, _ := l.client.Watch.Map().Identities()
	for _, id := range identities {
		if !v.trusted[id] {
			all = append(all, id)
		}
	}
	return all
}

const (
	firstPause = 200 * time.Millisecond
	maxPause   = time.Minute
)

// repairs keeps a set whole that has a source, or may be empty, and removes what loads left of any set. After a
// failure it pauses, twice as long each time, but no longer than until servers answer again that did not.
func (l *lineage) repairs(ctx context.Context) {
	pause := firstPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.repair:
		}
		away := l.client.Watch.Lacks()
		err := l.mend(ctx)
		if err == nil {
			pause = firstPause
			continue
		}
		if ctx.Err() != nil {
			return
		}
		l.options.Logger.Warn("a set could not be loaded, or what a load left could not be removed",
			"set", l.name, "error", err)
		back, err := l.rest(ctx, pause, away)
		if err != nil {
			return
		}
		if pause = min(2*pause, maxPause); back {
			pause = firstPause
		}
		l.repairSoon()
	}
}

// rest waits for the end of a pause, or for a poll that all servers answer, after one that they did not or if one was
// away before. Back says that it was such a poll.
func (l *lineage) rest(ctx context.Context, pause time.Duration, away bool) (back bool, err error) {
	over := time.NewTimer(pause)
	defer over.Stop()
	for {
		polled := l.client.Watch.Changed() // before the look: a poll after it ends the wait below
		now := l.client.Watch.Lacks()
		if away && !now {
			return true, nil
		}
		away = now
		select {
		case <-polled:
		case <-over.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// mend does what the set needs, if it needs anything and no other process does it. A set that was dropped needs
// nothing until a program makes it again, which a poll notices.
func (l *lineage) mend(ctx context.Context) error {
	if l.task(l.view.Load()) == nothing {
		return nil
	}
	return l.locked(ctx, func(ctx context.Context) error {
		l.refresh(ctx)
		v := l.view.Load()
		if err := errors.Join(v.usable(), v.err); err != nil {
			return err
		}
		switch l.task(v) {
		case load, larger:
			return l.loadLocked(ctx, l.options.Source)
		case keys:
			err := l.refill(ctx, l.options.Source, l.since(v))
			if err != nil && (errors.Is(err, ErrIncomplete) || conn.IsForeign(err)) { // it lacks values, not only keys
				return l.loadLocked(ctx, l.options.Source)
			}
			return err
		case room:
			_, err := l.sweep(ctx, v)
			return err
		}
		return nil
	})
}

// A need is what a set needs to be whole.
type need int

const (
	nothing need = iota
	room         // what an earlier load left must go
	larger       // a cuckoo set needs room for more keys
	keys         // those that a failover forgot
	load
)

func (l *lineage) need(v *view) need {
	lost := l.lost.Load()
	switch {
	case v.usable() != nil:
		return nothing
	case v.cfg.Generation == "" || lost != nil && *lost == v.cfg.Generation:
		return load
	case len(l.untrusted(v)) != 0 && v.cfg.Asked.Kind == config.KindCuckoo && l.options.Source != nil:
		return load // keys that are added again would be there twice
	case len(l.untrusted(v)) != 0:
		return keys
	case l.options.Source != nil && v.cfg.Outgrown():
		return larger
	case v.leftover():
		return room
	}
	return nothing
}

// task is what the background does about need: without a source a set waits for its Load, and so it does while loads
// rest.
func (l *lineage) task(v *view) need {
	n := l.need(v)
	if n == load || n == keys {
		resting := n == load && l.pace.resting(v.cfg.Generation, time.Now())
		switch {
		case !resting && (l.options.Source != nil || l.options.StartEmpty):
		case v.leftover():
			return room
		default:
			return nothing
		}
	}
	return n
}

// since returns from when on a failover may have forgotten keys.
func (l *lineage) since(v *view) time.Time {
	whole := l.whole.Load()
	if whole == nil || l.options.ReplicaLag == 0 {
		return time.Time{}
	}
	from := whole.Add(-l.options.ReplicaLag - v.cfg.Grace - nodes.Lease)
	if !l.client.Watch.Map().Since(from, l.untrusted(v)) {
		return time.Time{} // a process that began after that read its values from a file of any age
	}
	return from
}

func (l *lineage) loaded(err error) {
	if err != nil {
		l.failedLoads.Add(1)
	}
}

func (l *lineage) loadLocked(ctx context.Context, source Source) (err error) {
	defer func() { l.loaded(err) }()
	begun := time.Now()
	for {
		err := l.build(ctx, source)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrFull) {
			return err
		}
		if err := l.grown(ctx, err); err != nil {
			return err
		}
	}
	l.options.Logger.Info("a set was loaded", "set", l.name, "took", time.Since(begun))
	return nil
}

const (
	lockTime  = 10 * time.Second
	lockRenew = lockTime / 4
	lockRetry = lockTime / 8
)

// locked calls f while no other process loads the set. The lock saves work: what keeps two loads from harming each
// other is that each publishes only on top of the configuration that it knows.
func (l *lineage) locked(ctx context.Context, f func(context.Context) error) error {
	key, mine := layout.ConfigKey(l.name)+":lock", rand.Text()
	for {
		got, err := l.client.RDB.SetNX(ctx, key, mine, lockTime).Result()
		if err != nil {
			return err
		}
		if got {
			break
		}
		if ttl, err := l.client.RDB.PTTL(ctx, key).Result(); err == nil && ttl == -1 {
			return fmt.Errorf("%w: %s does not expire", ErrForeign, key)
		}
		if err := sleep(ctx, lockRetry); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, lockRenew) == nil {
			if !l.ifLocked(ctx, key, mine, func(p redis.Pipeliner) { p.PExpire(ctx, key, lockTime) }) {
				cancel(fmt.Errorf("%w: the lock of the load was lost", ErrUnavailable))
			}
		}
	}()
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = errors.Join(err, cause)
	}
	cancel(nil)
	<-done
	clean, stop := context.WithTimeout(context.WithoutCancel(ctx), nodes.Lease)
	defer stop()
	l.ifLocked(clean, key, mine, func(p redis.Pipeliner) { p.Del(clean, key) })
	return err
}

// ifLocked executes commands if the lock is still held, and says whether it was.
func (l *lineage) ifLocked(ctx context.Context, key, mine string, commands func(redis.Pipeliner)) bool {
	err := l.client.RDB.Watch(ctx, func(tx *redis.Tx) error {
		if held, err := tx.Get(ctx, key).Result(); err != nil || held != mine {
			return errors.Join(errStale, err)
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			commands(p)
			return nil
		})
		return err
	}, key)
	return err == nil
}
