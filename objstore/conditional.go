package objstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrUnconditional says that a store overwrites what PutIfAbsent must leave alone.
var ErrUnconditional = errors.New("the object store does not honour create-if-absent (If-None-Match: *), so that " +
	"two writers would overwrite each other's commits and lose data; use a server, version or setting that honours it")

// racers is how many create one key at a time in CheckConditional, and cleanup how long it takes at most to
// delete it after the context has ended.
const (
	racers  = 8
	cleanup = 10 * time.Second
)

// CheckConditional returns an error that matches [ErrUnconditional] if s lets several calls of PutIfAbsent for one key
// succeed, as servers do that ignore the condition. Eight of them race for a random key that begins with prefix (as in
// List: a slash at the end is part of it). Then it tries once more, checks the content, and deletes the object: eleven
// requests. Callers check before they trust a store with anything.
func CheckConditional(ctx context.Context, s Store, prefix string) (err error) {
	key := prefix + "conditional-check-" + rand.Text()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
		defer cancel()
		if failed := s.Delete(ctx, key); err == nil {
			err = failed
		}
	}()
	bodies, errs := race(ctx, s, key)
	winner := -1
	for i, err := range errs {
		switch {
		case errors.Is(err, ErrExists):
		case err != nil:
			return fmt.Errorf("objstore: check of create-if-absent: %w", err)
		case winner >= 0:
			return fmt.Errorf("%w (%d and %d both created %q)", ErrUnconditional, winner, i, key)
		default:
			winner = i
		}
	}
	late := Commit(ctx, s, key, []byte("late "+rand.Text()))
	if late != nil && !errors.Is(late, ErrExists) {
		return fmt.Errorf("objstore: check of create-if-absent: %w", late)
	}
	if late == nil || winner < 0 {
		return fmt.Errorf("%w (%q: winner %d, then overwritten: %t)", ErrUnconditional, key, winner, late == nil)
	}
	own, err := holds(ctx, s, key, bodies[winner])
	if err == nil && !own {
		err = fmt.Errorf("%w (%q has not the content of the one that created it)", ErrUnconditional, key)
	}
	return err
}

// race lets all commit to one key at once.
func race(ctx context.Context, s Store, key string) (bodies [racers][]byte, errs [racers]error) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range racers {
		bodies[i] = fmt.Appendf(nil, "racer %d %s", i, rand.Text())
		all.Go(func() {
			<-start
			errs[i] = Commit(ctx, s, key, bodies[i])
		})
	}
	close(start)
	all.Wait()
	return bodies, errs
}
