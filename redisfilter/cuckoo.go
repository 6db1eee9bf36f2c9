package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// A Cuckoo is a cuckoo filter that many processes share: a set from which keys can be removed. It is
// for any number of goroutines.
//
// It is a multiset, as the local cuckoo.Set is: a key that was added twice is there until it was
// removed twice. Two processes that add one key, or a source that a load reads while the key is
// added, make two copies; so does a program that adds again after an error. A copy too many is a
// "maybe" that stays until the next load. Up to eight copies fit.
//
// It takes 11.5 bits per key at a rate of 1 %, 15.1 at 0.1 %, and is asked nearly as fast as a Set. Add
// and Remove are scripts: they cost the server twice as much as a Set's Add one by one, and seven
// times as much in batches, and leave there, for a minute, some 170 bytes per call. A set that is
// only added to is better a Set.
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
// Where "maybe" for keys that are gone does little harm, never remove: Load the set from the database
// every hour or day. A load makes the set's next generation beside the one in use. It is what sets
// with a Source do after a loss and, other than a Set, after each failover too.
//
// # Order
//
// Add must succeed before the row commits, Remove must begin after its deletion has committed, and
// must end within Options.Grace. While a load runs, Remove takes keys from the generation in use
// only, so that keys which the load has read, or which were added meanwhile, are still "maybe"
// afterwards, until the next load. If so many keys come and go meanwhile that its generation has no room
// for them, the load fails, and no add does.
type Cuckoo struct {
	lineage
}

// NewCuckoo returns the cuckoo set of a name, and makes it if there is none. It is made for n keys,
// copies counted, 1 to 2^32, and a rate of false positives from 2e-9. A set that exists and was made for
// fewer is used as it is, and its next load makes it larger; one that was made for more stays so until it is
// dropped. See New for the rest.
func NewCuckoo(ctx context.Context, c *Client, name string, n int, rate float64, o *Options) (*Cuckoo, error) {
	if o == nil {
		o = &Options{}
	}
	if o.Growth != 0 {
		return nil, errors.New("redisfilter: a cuckoo set grows by loads: leave Options.Growth at 0")
	}
	asked := request{
		Kind: kindCuckoo, Keys: n, Rate: rate, Partitions: o.Partitions, ShardBytes: o.ShardBytes,
		PublicHash: o.PublicHash,
	}
	if asked.ShardBytes == 0 {
		asked.ShardBytes = cuckootable.DefaultSize
	}
	fresh, err := newCuckooConfig(asked)
	if err != nil {
		return nil, fmt.Errorf("redisfilter: %w", err)
	}
	k := &Cuckoo{lineage{lifecycle: o.lifecycle(), client: c, name: name, asked: asked}}
	k.open = func(cfg *config) content { return newTables(c, name, cfg) }
	if err := k.start(ctx, fresh); err != nil {
		return nil, err
	}
	return k, nil
}

func newCuckooConfig(asked request) (*config, error) {
	shape, err := cuckootable.NewShape(uint64(max(0, asked.Keys)), asked.Rate, asked.ShardBytes, asked.Partitions)
	if err != nil {
		return nil, err
	}
	cfg := &config{Version: configVersion, Asked: asked, Partitions: int(shape.Shards), Table: shape}
	if !asked.PublicHash {
		cfg.Seed = newSeed()
	}
	return cfg, cfg.check()
}

// Add adds a key, or adds it once more, in one trip. It returns nil once every process that asks from
// then on is told of the key. Add a key before its row commits. ErrFull and ErrTooManyCopies mean
// that it was not added.
func (k *Cuckoo) Add(ctx context.Context, key []byte) error { return k.MAdd(ctx, [][]byte{key}) }

// AddNew adds a key unless Contains, in one trip, and reports whether it did. True is certain, and of any
// number of processes that add a key at the same time at most one is told so. A key that is not
// added because it is taken for another goes when that one is removed.
func (k *Cuckoo) AddNew(ctx context.Context, key []byte) (bool, error) {
	fresh, err := k.MAddNew(ctx, [][]byte{key})
	return fresh[0], err
}

// Remove takes one copy of a key away, in one trip, and reports whether there was one. Read in the
// description of Cuckoo when to call it. With ErrIncomplete it did nothing, and nothing needs be done: the next
// load does not find the row.
func (k *Cuckoo) Remove(ctx context.Context, key []byte) (bool, error) {
	removed, err := k.MRemove(ctx, [][]byte{key})
	return removed[0], err
}

// Contains reports whether a key may be there; false is certain. It takes one trip to Redis.
func (k *Cuckoo) Contains(ctx context.Context, key []byte) (bool, error) {
	maybe, err := k.MContains(ctx, [][]byte{key})
	return maybe[0], err
}

// MAdd is Add for many keys, in one trip to each node. If some are refused, the error is a
// *RefusedError, and the others were added; with any other error some may have been.
func (k *Cuckoo) MAdd(ctx context.Context, keys [][]byte) error {
	_, err := k.addAll(ctx, keys, false)
	return err
}

// MAddNew is AddNew for many keys, in one trip to each node. Of a key that is there twice, one is new. If some
// are refused, the error is a *RefusedError, and the other answers count; with any other error none does.
func (k *Cuckoo) MAddNew(ctx context.Context, keys [][]byte) (fresh []bool, err error) {
	return k.addAll(ctx, keys, true)
}

// MRemove is Remove for many keys, in one trip to each node. With an error, those were removed whose
// answer is true, and perhaps others.
func (k *Cuckoo) MRemove(ctx context.Context, keys [][]byte) (removed []bool, err error) {
	ctx, cancel := k.deadline(ctx)
	defer cancel()
	removed = make([]bool, len(keys))
	if err = k.removeEach(ctx, keys, removed); err != nil {
		k.client.watch.Kick()
	}
	return removed, k.client.wrap(k.name, err)
}

// MContains is Contains for many keys, in one trip to each node. Answers that are false are certain,
// with an error too.
func (k *Cuckoo) MContains(ctx context.Context, keys [][]byte) ([]bool, error) {
	return k.askAll(ctx, keys)
}

// Load makes the set anew out of a source and takes it into use; see Set.Load. It gathers the keys of the
// source in memory, as much as the set has in Redis, and takes another Options.Grace.
func (k *Cuckoo) Load(ctx context.Context, source Source) error {
	return k.client.wrap(k.name, k.load(ctx, source))
}

// Ready waits until the set can say no, or returns why it cannot when ctx ends.
func (k *Cuckoo) Ready(ctx context.Context) error { return k.client.wrap(k.name, k.ready(ctx)) }

// Drop removes the set from Redis, in 1.5 s, after which no process adds to it any more. Other processes are
// told ErrDropped for an hour. A Drop that failed, or was broken off, may be called again.
func (k *Cuckoo) Drop(ctx context.Context) error { return k.client.wrap(k.name, k.drop(ctx)) }

// Close ends what the set does in the background. What is in Redis stays.
func (k *Cuckoo) Close() error {
	k.close()
	return nil
}

// removeEach is all removals. They go to the generation in use and to no other. One that is being built may lack
// a key whose row was deleted before its source was read, and would lose another key in its place.
// Once it is in use, it has the key: the load waits for Options.Grace, in which removals of keys that
// its source did not show come to their end.
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
		if err := k.allAway(t.slots(hashes)); err != nil {
			return err
		}
		left, err = t.change(ctx, cuckootable.Remove, g, hashes, left, func(i int, a cuckootable.Answer) {
			removed[i] = a == cuckootable.Changed
		})
		if err != nil || len(left) == 0 {
			return err
		}
		if err := k.client.watch.Poll(ctx); err != nil { // another generation may be in use by now
			return err
		}
		if now, err := k.current(); err != nil || now.cfg.Generation == g {
			return errors.Join(err, k.missing(g))
		}
	}
}

// Info has Redis count the bits of each shard: milliseconds for a set of a million keys. It returns
// what it found together with an error if a part was lost. Keys counts copies.
func (k *Cuckoo) Info(ctx context.Context) (Info, error) {
	info, err := k.info(ctx)
	return info, k.client.wrap(k.name, err)
}

func (k *Cuckoo) info(ctx context.Context) (Info, error) {
	v, err := k.current()
	info := Info{Name: k.name, Layers: 1}
	if err != nil {
		return info, err
	}
	info.Capacity, info.Rate = v.cfg.Asked.Keys, v.cfg.Asked.Rate
	t, g := v.content.(*tables), v.cfg.Generation
	info.Partitions, info.Shards = t.count(), t.count()
	info.Bytes = int64(t.count()) * int64(t.shape.Size())
	info.Loaded, info.Loading = g != "", v.cfg.Building != ""
	if !info.Loaded {
		return info, fmt.Errorf("%w: it was not loaded yet", ErrIncomplete)
	}
	one := t.shape
	one.Shards = 1
	first, last := one.SlotBytes()
	var odd error
	rate := 0.0
	err = t.client.forAll(ctx, t.count(), func(part int) []redis.Cmder {
		key := t.shard(part, g)
		return []redis.Cmder{
			redis.NewIntSliceCmd(ctx, t.shape.Probe(key)...), redis.NewIntCmd(ctx, "bitcount", key, first, last),
		}
	}, func(part int, cmds []redis.Cmder) error {
		if err := t.shape.Whole(cmds[0].(*redis.IntSliceCmd).Val(), layout.TagOf(keyAsked(cmds[0]))); err != nil {
			info.Lost++
			rate++
			odd = errors.Join(odd, notLost(t.shard(part, g), err))
			return nil
		}
		n := one.Keys(int(cmds[1].(*redis.IntCmd).Val()))
		info.Keys += n
		rate += one.Rate(uint64(n))
		return nil
	})
	info.FalsePositiveRate = math.Min(1, rate/float64(t.count()))
	if err == nil && info.Lost != 0 {
		err = errors.Join(k.missing(g), odd)
	}
	return info, err
}
