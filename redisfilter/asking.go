package redisfilter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// hashAll returns the hashes of keys under the seed of a content.
func hashAll(c content, keys [][]byte) []uint64 {
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = c.Hash(key)
	}
	return hashes
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

// Contains reports whether a key may have been added; false is certain. It takes one trip to Redis.
func (l *lineage) Contains(ctx context.Context, key []byte) (bool, error) {
	maybe, err := l.MContains(ctx, [][]byte{key})
	return maybe[0], err
}

// MContains is Contains for many keys, in one trip to each node. Answers that are false are certain, with an error
// too.
func (l *lineage) MContains(ctx context.Context, keys [][]byte) ([]bool, error) {
	ctx, cancel := l.deadline(ctx)
	defer cancel()
	for {
		maybe := slices.Repeat([]bool{true}, len(keys))
		if err := l.askOnce(ctx, keys, maybe); !errors.Is(err, errStale) {
			return maybe, l.wrap(err)
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
	k := v.content
	hashes := hashAll(k, keys)
	slots := k.Slots(hashes)
	if err := l.allAway(slots); err != nil {
		return err
	}
	answers, failed := k.Ask(ctx, g, hashes)
	if failed != nil {
		l.client.Watch.Kick()
		if conn.IsForeign(failed) {
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

// superseded reports whether another generation is in use by now than one that was just found to lack a value: then
// nothing was lost. It polls, and so is asked for the first loss only.
func (l *lineage) superseded(ctx context.Context, generation string) bool {
	if lost := l.lost.Load(); lost != nil && *lost == generation || l.client.Watch.Poll(ctx) != nil {
		return false
	}
	now := l.view.Load()
	return now.usable() == nil && now.cfg.Generation != generation
}

// Add adds a key: one trip to Redis, two if the set grows. It returns nil once every process that asks from then on
// is told of the key. Add a key before its row commits: the other order loses keys of programs that end between the
// two. A Cuckoo has a key once more for each Add. With ErrFull and ErrTooManyCopies, which are a Cuckoo's, it was not
// added.
func (l *lineage) Add(ctx context.Context, key []byte) error { return l.MAdd(ctx, [][]byte{key}) }

// AddNew adds a key and reports whether it was new. True is certain, and of any number of processes that add a key at
// the same time at most one gets it. A new key is taken for an old one at the rate of false positives. It also is
// whenever there is an error, such as ErrIncomplete before the set was loaded. It takes one trip; in a Set that grows
// it is a script, and takes more trips when a layer is full. A Cuckoo does not add a key that is there, or is taken
// for another that is there and goes when that one is removed.
func (l *lineage) AddNew(ctx context.Context, key []byte) (bool, error) {
	fresh, err := l.MAddNew(ctx, [][]byte{key})
	return fresh[0], err
}

// MAdd is Add for many keys, in one trip to each node; in two if the set grows, and in more when a layer is full.
// With an error, some keys may have been added; with a *RefusedError, all but those that it names were.
// Options.Timeout bounds all of it: give ctx a deadline of its own for thousands of keys, or use Load or Import.
func (l *lineage) MAdd(ctx context.Context, keys [][]byte) error {
	_, err := l.add(ctx, keys, false)
	return err
}

// MAddNew is AddNew for many keys. A Set that grows takes a trip for each. Of a key that is there twice, one is new.
// With an error no answer is true, though some keys may have been added; with a *RefusedError, all answers count.
func (l *lineage) MAddNew(ctx context.Context, keys [][]byte) (fresh []bool, err error) {
	return l.add(ctx, keys, true)
}

// add adds keys to every generation, until it is certain that there is no other. Whatever the error, the keys have an
// answer each.
func (l *lineage) add(ctx context.Context, keys [][]byte, isNew bool) ([]bool, error) {
	ctx, cancel := l.deadline(ctx)
	defer cancel()
	a := addition{isNew: isNew, fresh: slices.Repeat([]bool{isNew}, len(keys))}
	if err := l.addEverywhere(ctx, keys, &a); err != nil {
		l.client.Watch.Kick()
		clear(a.fresh)
		return a.fresh, l.wrap(err)
	}
	if a.fullIn != "" {
		l.full.Store(&a.fullIn)
	}
	if len(a.refused.Full) != 0 {
		l.refusedFull(ctx)
	}
	return a.fresh, l.wrap(a.refused.orNil())
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
		k := v.content
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
// What is fresh is decided by the generations that are asked, or were. One that is still loaded may hear of a key
// first from the second process; it counts when it has come into use before the add ends.
func (l *lineage) addToAll(ctx context.Context, v *view, a *addition, done map[string][]bool) (whole bool, err error) {
	whole = true
	for _, g := range v.cfg.Generations() {
		before := slices.Clone(a.fresh)
		if done[g] == nil {
			there, err := v.contentOf(g).put(ctx, g, g == v.cfg.Generation, a)
			if err != nil {
				if conn.IsForeign(err) {
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
		if err = l.client.Watch.Away(slot); err == nil {
			return nil
		}
	}
	if err != nil {
		err = l.client.Unavailable(err)
	}
	return err
}

// settle returns a view that is confirmed for the owners of all slots, and that vouches for what they said if asked
// to.
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
