package redisfilter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// hashAll returns the hashes of keys under the seed of a content.
func hashAll(c content, keys [][]byte) []uint64 {
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = c.hash(key)
	}
	return hashes
}

// A keyed is a content that is asked for keys and takes them: that of a Set or of a Cuckoo.
type keyed interface {
	content

	// slots returns the slot that each key is in, in every generation.
	slots(hashes []uint64) []int

	// ask looks keys up in a generation, in as few trips as it can. Where it cannot say, the answer is
	// lost; an error then says why, unless a value is just not there.
	ask(ctx context.Context, generation string, hashes []uint64) ([]layout.Answer, error)

	// put adds keys to a generation and notes what it found. It says whether all was whole.
	put(ctx context.Context, generation string, inUse bool, a *addition) (whole bool, err error)
}

// An addition is keys on their way into every generation.
type addition struct {
	hashes  []uint64
	isNew   bool   // only keys that are not there are asked to be added
	fresh   []bool // those of them that no generation had so far
	begun   bool   // a generation has them already
	refused RefusedError
	fullIn  string // the generation in use that had no room; "" for none
}

// askAll is all lookups. The answers are "maybe" where nothing else is known.
func (l *lineage) askAll(ctx context.Context, keys [][]byte) ([]bool, error) {
	ctx, cancel := l.deadline(ctx)
	defer cancel()
	for {
		maybe := slices.Repeat([]bool{true}, len(keys))
		err := l.askOnce(ctx, keys, maybe)
		if !errors.Is(err, errStale) {
			l.tallies.asked(maybe, err)
			return maybe, l.client.wrap(l.name, err)
		}
	}
}

// askOnce clears the maybes of keys that are absent.
func (l *lineage) askOnce(ctx context.Context, keys [][]byte, maybe []bool) error {
	v, err := l.current()
	if err != nil {
		return err
	}
	g := v.cfg.Generation
	if g == "" {
		return fmt.Errorf("%w: it was not loaded yet", ErrIncomplete)
	}
	k := v.content.(keyed)
	hashes := hashAll(k, keys)
	slots := k.slots(hashes)
	if err := l.allAway(slots); err != nil {
		return err
	}
	answers, failed := k.ask(ctx, g, hashes)
	if failed != nil {
		l.client.watch.Kick()
		if isForeign(failed) {
			_ = l.missing(g)
		}
	}
	vouched := map[int]error{}
	for i, a := range answers {
		switch a {
		case layout.Lost:
			if failed == nil {
				if l.superseded(ctx, g) {
					return errStale
				}
				failed = l.missing(g)
			}
		case layout.Absent:
			err, ok := vouched[slots[i]]
			if !ok {
				err = l.vouch(ctx, slots[i], v)
				vouched[slots[i]] = err
			}
			if errors.Is(err, errStale) {
				return err
			}
			maybe[i] = err != nil
			if failed == nil {
				failed = err
			}
		}
	}
	return failed
}

// superseded reports whether another generation is in use by now than one that was just found to lack
// a value: then nothing was lost. It polls, and so is asked for the first loss only.
func (l *lineage) superseded(ctx context.Context, generation string) bool {
	if lost := l.lost.Load(); lost != nil && *lost == generation || l.client.watch.Poll(ctx) != nil {
		return false
	}
	now := l.view.Load()
	return now.usable() == nil && now.cfg.Generation != generation
}

// addAll is all adds: to every generation, until it is certain that there is no other.
// Whatever the error, the keys have an answer each.
func (l *lineage) addAll(ctx context.Context, keys [][]byte, isNew bool) ([]bool, error) {
	ctx, cancel := l.deadline(ctx)
	defer cancel()
	a := addition{isNew: isNew, fresh: slices.Repeat([]bool{isNew}, len(keys))}
	err := l.addEverywhere(ctx, keys, &a)
	l.tallies.added(len(keys), &a, err)
	if err != nil {
		l.client.watch.Kick()
		clear(a.fresh)
		return a.fresh, l.client.wrap(l.name, err)
	}
	if len(a.refused.Full) != 0 {
		l.refusedFull(ctx)
	}
	return a.fresh, l.client.wrap(l.name, a.refused.orNil())
}

// addEverywhere adds keys to one generation after the other, all of them before it returns.
func (l *lineage) addEverywhere(ctx context.Context, keys [][]byte, a *addition) error {
	var incomplete error
	done := map[string][]bool{}
	for {
		v, err := l.current()
		if err == nil {
			err = v.await(ctx)
		}
		if err != nil {
			return err
		}
		k := v.content.(keyed)
		a.hashes = hashAll(k, keys)
		slots := v.slots(a.hashes)
		if err := l.allAway(slots); err != nil {
			return err
		}
		if v.cfg.Generation == "" {
			incomplete = fmt.Errorf("%w: it was not loaded yet", ErrIncomplete)
		}
		whole, err := l.addToAll(ctx, v, a, done)
		if err != nil {
			return err
		}
		if !whole {
			incomplete = l.missing(v.cfg.Generation)
		}
		now, err := l.settle(ctx, v, slots, a.isNew)
		if errors.Is(err, ErrIncomplete) {
			incomplete = err
		} else if err != nil {
			return err
		}
		if v.sameGenerations(now) {
			break
		}
	}
	if !a.isNew {
		return nil // it is in whatever can say no
	}
	return incomplete
}

// addToAll adds keys to the generations of v that are not done, and says whether the one in use is whole.
//
// What is fresh is decided by the generations that are asked, or were. One that is still loaded may hear
// of a key first from who was second; it counts when it has come into use before the add ends.
func (l *lineage) addToAll(ctx context.Context, v *view, a *addition, done map[string][]bool) (whole bool, err error) {
	whole = true
	for _, g := range v.cfg.generations() {
		before := slices.Clone(a.fresh)
		if done[g] == nil {
			there, err := v.contentOf(g).(keyed).put(ctx, g, g == v.cfg.Generation, a)
			if err != nil {
				if isForeign(err) {
					_ = l.missing(g)
				}
				return false, err
			}
			if a.begun = true; len(a.refused.Full) != 0 {
				a.fullIn = cmp.Or(a.fullIn, g)
			}
			whole = whole && (there || g != v.cfg.Generation)
			done[g], a.fresh = a.fresh, before
		}
		if g == v.cfg.Building {
			continue
		}
		for i, fresh := range done[g] {
			a.fresh[i] = a.fresh[i] && fresh
		}
	}
	return whole, nil
}

// allAway returns an error if every server that would be asked is known to be away.
func (l *lineage) allAway(slots []int) (err error) {
	for _, slot := range slots {
		if err = l.client.watch.Away(slot); err == nil {
			return nil
		}
	}
	if err != nil {
		err = l.client.unavailable(err)
	}
	return err
}

// settle returns a view that is confirmed for the owners of all slots, and that vouches for what they
// said if asked to.
func (l *lineage) settle(ctx context.Context, v *view, slots []int, vouch bool) (*view, error) {
	seen := map[int]bool{}
	now := v
	for _, slot := range slots {
		if seen[slot] {
			continue
		}
		seen[slot] = true
		var err error
		if now, err = l.sure(ctx, slot); err != nil {
			return now, err
		}
		if !vouch || v.cfg.Generation == "" {
			continue
		}
		err = l.vouch(ctx, slot, v)
		if errors.Is(err, errStale) {
			if now = l.view.Load(); !v.sameGenerations(now) {
				return now, nil
			}
			err = fmt.Errorf("%w: %w", ErrIncomplete, err)
		}
		if err != nil {
			return now, err
		}
	}
	return now, nil
}
