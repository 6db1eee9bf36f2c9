package redisfilter

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
)

// insert adds keys to one generation.
func (t *tables) insert(ctx context.Context, generation string, hashes []uint64) error {
	all := make([]int, len(hashes))
	for i := range all {
		all[i] = i
	}
	var refused RefusedError
	lost, err := t.change(ctx, cuckootable.Add, generation, hashes, all, refused.note)
	switch {
	case err != nil:
		return err
	case len(lost) != 0:
		return fmt.Errorf("%w: a part of generation %s was lost", ErrIncomplete, generation)
	case len(refused.Full) != 0:
		return fmt.Errorf("%w: generation %s", ErrFull, generation)
	}
	return nil // a source may give a key as often as it likes
}

// bulk adds keys to a generation: they are gathered here, in the memory that the set takes in Redis,
// and then joined with what others added meanwhile, shard by shard.
func (t *tables) bulk(generation string) (add insert, finish func(context.Context) error) {
	gathered := make([]*cuckootable.Table, t.count())
	keys, full := 0, false
	add = func(_ context.Context, hashes []uint64) error {
		keys += len(hashes)
		for _, h := range hashes {
			if full { // the rest is counted
				return nil
			}
			p := t.shape.Place(h)
			if gathered[p.Shard] == nil {
				gathered[p.Shard] = t.shape.NewTable()
			}
			full = errors.Is(gathered[p.Shard].Add(p), cuckootable.ErrFull)
		}
		return nil
	}
	return add, func(ctx context.Context) error {
		if full {
			return overfullError{keys}
		}
		return t.merge(ctx, generation, gathered)
	}
}

// merge adds the keys of tables, nil for none, to those of a generation.
func (t *tables) merge(ctx context.Context, generation string, gathered []*cuckootable.Table) error {
	err := t.client.forAll(ctx, t.count(), func(part int) []redis.Cmder {
		if gathered[part] == nil {
			return nil
		}
		return []redis.Cmder{redis.NewStringCmd(ctx, "get", t.shard(part, generation))}
	}, func(part int, cmds []redis.Cmder) error {
		if gathered[part] == nil {
			return nil
		}
		defer func() { gathered[part] = nil }()
		return t.mergeShard(ctx, t.shard(part, generation), gathered[part].Bytes(), cmds[0].(*redis.StringCmd))
	})
	if errors.Is(err, redis.Nil) {
		return fmt.Errorf("%w: a part of generation %s was lost", ErrIncomplete, generation)
	}
	return err
}

// mergeShard adds keys to a shard that others add to as well: again, if they did in between.
func (t *tables) mergeShard(ctx context.Context, key string, gathered []byte, read *redis.StringCmd) error {
	for {
		old, err := read.Bytes()
		if err != nil {
			return foreign(err, key, nil)
		}
		next, err := t.joined(key, gathered, old)
		if err != nil {
			return err
		}
		swap := cuckootable.Swap(ctx, key, old, next)
		t.client.run(ctx, swap)
		swapped, err := swap.Int()
		if err != nil {
			return foreign(err, key, nil)
		}
		if swapped == 1 {
			return nil
		}
		read = redis.NewStringCmd(ctx, "get", key)
		t.client.run(ctx, read)
	}
}

// joined returns a shard of the keys of two. In most cases the stored one has few.
func (t *tables) joined(key string, gathered, stored []byte) ([]byte, error) {
	own, err := t.shape.Open(cuckootable.Tagged(append([]byte(nil), gathered...), tagOf(key)), tagOf(key))
	if err != nil {
		return nil, err
	}
	others, err := t.shape.Open(stored, tagOf(key))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s is lost", ErrIncomplete, key), notLost(key, err))
	}
	for p := range others.Places() {
		if err := own.Add(p); errors.Is(err, cuckootable.ErrFull) {
			return nil, fmt.Errorf("%w: %s", ErrFull, key)
		}
	}
	return own.Bytes(), nil
}
