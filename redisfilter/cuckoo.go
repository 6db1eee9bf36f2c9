package redisfilter

import (
	"context"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
)

// A Cuckoo is a cuckoo filter that many processes share: a set from which keys can be removed. It is for any number
// of goroutines.
//
// It is a multiset, as the local cuckoo.Set is: a key that was added twice is there until it was removed twice. Two
// processes that add one key, or a source that a load reads while the key is added, make two copies; so does a
// program that adds again after an error. A copy too many is a "maybe" that stays until the next load. Up to eight
// copies fit.
//
// It takes 11.5 bits per key at a rate of 1 %, 15.1 at 0.1 %, and is asked nearly as fast as a Set. Add and Remove
// are scripts. They cost the server twice as much as a Set's Add one by one, and seven times as much in batches. Each
// call leaves some 170 bytes there for a minute. A set that is only added to is better a Set.
//
// # What no script can do
//
//   - Move keys between shards. Each key has one shard, and a set that is full stays full until its
//     next load: ErrFull. It has room for the keys that it was made for, and some more. The load makes
//     it for twice as many, or for those that it finds and a quarter; with Options.Source it begins by itself.
//   - Hash a key again. Redis holds fingerprints, so that a set with another rate or seed must be
//     loaded from the keys.
//   - Know that a key was really added. Remove takes away what has the key's fingerprint. If the key
//     is not there, that is another key's at the set's rate of false positives, and this other key is
//     then denied. Remove only what was added, as often as it was added: where several programs
//     delete, the one whose transaction deleted the row removes its key.
//   - Tell whether a removal was made whose answer did not come. Each call carries an id, under which
//     Redis remembers its answers for a minute, and a call that is sent again within the deadline is
//     not made twice. A Remove that failed with ErrUnavailable may have been made, or be made later; do
//     not call it again, as that is another call. The key is a "maybe" until the next load, at worst.
//
// Where "maybe" for keys that are gone does little harm, never remove: Load the set from the database every hour or
// day. A load makes the set's next generation beside the one in use. It is what sets with a Source do after a loss
// and, other than a Set, after each failover too.
//
// # Order
//
// Add must succeed before the row commits, Remove must begin after its deletion has committed, and must end within
// Options.Grace. While a load runs, Remove takes keys from the generation in use only, so that keys which the load
// has read, or which were added during it, are still "maybe" afterwards, until the next load. If its generation has no
// room for the keys that are added and removed during the load, the load fails, and no add does.
type Cuckoo struct{ lineage }

// NewCuckoo returns the cuckoo set of a name, and makes it if there is none. It is made for n keys, copies counted, 1
// to 2^32, and a rate of false positives from 2e-9. A set that exists and was made for fewer is used as it is, and
// its next load makes it larger; one that was made for more stays so until it is dropped. See New for the rest.
func NewCuckoo(ctx context.Context, c *Client, name string, n int, rate float64, o *Options) (*Cuckoo, error) {
	if o != nil && o.Growth != 0 {
		return nil, errors.New("redisfilter: a cuckoo set grows by loads: leave Options.Growth at 0")
	}
	k := &Cuckoo{}
	if err := k.start(ctx, c, name, config.Request{Kind: config.KindCuckoo, Keys: n, Rate: rate}, o); err != nil {
		return nil, err
	}
	return k, nil
}

// Remove takes one copy of a key away, in one trip, and reports whether there was one. Read in the description of
// Cuckoo when to call it. With ErrIncomplete it did nothing, and nothing needs be done: the next load does not find
// the row.
func (k *Cuckoo) Remove(ctx context.Context, key []byte) (bool, error) {
	removed, err := k.MRemove(ctx, [][]byte{key})
	return removed[0], err
}

// MRemove is Remove for many keys, in one trip to each node. With an error, those were removed whose answer is true,
// and perhaps others.
func (k *Cuckoo) MRemove(ctx context.Context, keys [][]byte) (removed []bool, err error) {
	ctx, cancel := k.deadline(ctx)
	defer cancel()
	removed = make([]bool, len(keys))
	if err = k.removeEach(ctx, keys, removed); err != nil {
		k.client.Watch.Kick()
	}
	return removed, k.wrap(err)
}

// removeEach is all removals. They go to the generation in use and to no other. One that is being built may lack a
// key whose row was deleted before its source was read, and would lose another key in its place. Once it is in use,
// it has the key: the load waits for Options.Grace, in which removals of keys that its source did not show come to
// their end.
func (k *Cuckoo) removeEach(ctx context.Context, keys [][]byte, removed []bool) error {
	left := make([]int, len(removed))
	for i := range left {
		left[i] = i
	}
	for {
		v, err := k.current()
		if err != nil {
			return err
		}
		g := v.cfg.Generation
		if g == "" {
			return fmt.Errorf("%w: it was not loaded yet", ErrIncomplete)
		}
		t := v.content.(*tables)
		hashes := hashAll(t, keys)
		if err := k.allAway(t.Slots(hashes)); err != nil {
			return err
		}
		left, err = t.change(ctx, cuckootable.Remove, g, hashes, left, func(i int, a cuckootable.Answer) {
			removed[i] = a == cuckootable.Changed
		})
		if err != nil || len(left) == 0 {
			return err
		}
		if err := k.client.Watch.Poll(ctx); err != nil { // another generation may be in use by now
			return err
		}
		if now, err := k.current(); err != nil || now.cfg.Generation == g {
			return errors.Join(err, k.missing(g))
		}
	}
}
