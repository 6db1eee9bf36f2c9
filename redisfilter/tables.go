package redisfilter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/chain"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// Tables is the content of a Cuckoo: one shard of internal/cuckootable in each partition.
type tables struct {
	config.Hasher
	client *conn.Conn
	name   string
	shape  cuckootable.Shape
}

func newTables(c *conn.Conn, name string, cfg *config.Config) *tables {
	return &tables{cfg.Hasher(), c, name, cfg.Table}
}

func (t *tables) prefix(part int, generation string) string {
	return layout.PartitionPrefix(t.name, strconv.Itoa(part), generation)
}

func (t *tables) shard(part int, generation string) string {
	return layout.ShardKey(t.prefix(part, generation), 0, 0)
}

func (t *tables) count() int { return int(t.shape.Shards) }

// Slots returns the slot that each key is in, in every generation.
func (t *tables) Slots(hashes []uint64) []int {
	return chain.SlotsOf(t.client, t.name, len(hashes), func(i int) int { return int(t.shape.Place(hashes[i]).Shard) })
}

// Ask looks keys up in a generation: one command each, all in one trip.
func (t *tables) Ask(ctx context.Context, generation string, hashes []uint64) ([]layout.Answer, error) {
	answers := make([]layout.Answer, len(hashes))
	cmds := make([]redis.Cmder, len(hashes))
	for i, h := range hashes {
		p := t.shape.Place(h)
		cmds[i] = redis.NewIntSliceCmd(ctx, t.shape.Lookup(t.shard(int(p.Shard), generation), p)...)
	}
	t.client.Run(ctx, cmds...)
	var failed error
	for i, h := range hashes {
		p := t.shape.Place(h)
		n, err := 0, cmds[i].Err()
		if err == nil {
			n, err = t.shape.Copies(cmds[i].(*redis.IntSliceCmd).Val(), p)
		}
		switch {
		case err != nil:
			answers[i] = layout.Lost
			failed = errors.Join(failed, notLost(t.shard(int(p.Shard), generation), err))
		case n > 0:
			answers[i] = layout.Present
		}
	}
	return answers, failed
}

// notLost returns nil for the error of a shard that is just lost, and for none.
func notLost(key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cuckootable.ErrForeign):
		return fmt.Errorf("%w: %s: %w", ErrForeign, key, err)
	case errors.Is(err, cuckootable.ErrLost):
		return nil
	}
	return conn.Foreign(err, key, nil)
}

// put adds keys to a generation. The one in use says which are new, and which it refuses. Others follow: a key that
// is new is added to them without a look. If it were left out because of another key that it cannot be told from, it
// would go with that one.
func (t *tables) put(ctx context.Context, generation string, inUse bool, a *addition) (whole bool, err error) {
	var plain, looking []int
	for i := range a.hashes {
		switch {
		case a.refused.has(i):
		case a.isNew && (inUse && !a.begun || a.begun && !a.fresh[i]):
			looking = append(looking, i)
		default:
			plain = append(plain, i)
		}
	}
	refused := &a.refused
	if !inUse {
		refused = &RefusedError{}
	}
	lost, err := t.change(ctx, cuckootable.Add, generation, a.hashes, plain, refused.note)
	if err != nil {
		return false, err
	}
	also, err := t.change(ctx, cuckootable.AddNew, generation, a.hashes, looking,
		func(i int, got cuckootable.Answer) {
			a.fresh[i] = a.fresh[i] && got == cuckootable.Changed
			refused.note(i, got)
		})
	refused.sort()
	if err == nil && !inUse {
		err = t.spoil(ctx, generation, a.hashes, refused.Full)
	}
	return len(lost)+len(also) == 0, err
}

// spoil removes shards of a generation that is not in use because they lack keys that they had no room for: a load
// that fails is better than an add that does. Of a key that is there too often no copy is lacking, as the generation
// in use has no more.
func (t *tables) spoil(ctx context.Context, generation string, hashes []uint64, keys []int) error {
	for _, i := range keys {
		shard := t.shard(int(t.shape.Place(hashes[i]).Shard), generation)
		unlink := redis.NewIntCmd(ctx, "unlink", shard)
		t.client.Run(ctx, unlink)
		if err := unlink.Err(); err != nil {
			return conn.Foreign(err, shard, nil)
		}
	}
	return nil
}

// A change is one call for some keys of one shard.
type change struct {
	conn.Call
	keys []int // indices
}

const maxTries = 3

// change makes changes for the keys of some indices, in calls of one shard each, all in one trip, and tells each the
// answer. It returns the indices of keys whose shards are lost. A call that got no answer is sent again: it is made
// once in any case. All ends long before Redis forgets the answers: a call that were sent later would be made twice.
func (t *tables) change(ctx context.Context, op conn.Script, generation string, hashes []uint64, keys []int,
	tell func(i int, a cuckootable.Answer)) (lost []int, err error) {
	ctx, cancel := context.WithTimeout(ctx, cuckootable.Memory/2)
	defer cancel()
	pending := t.changes(generation, hashes, keys)
	for try := 0; len(pending) > 0; try++ {
		calls := make([]conn.Call, len(pending))
		for i, c := range pending {
			calls[i] = c.Call
		}
		var again []change
		for i, reply := range t.client.RunScript(ctx, op, calls) {
			c := pending[i]
			answers, failed := cuckootable.Answers(reply, len(c.keys))
			switch {
			case failed == nil:
				for k, key := range c.keys {
					tell(key, answers[k])
				}
			case errors.Is(failed, cuckootable.ErrLost):
				lost = append(lost, c.keys...)
			case try < maxTries && ctx.Err() == nil && !errors.As(failed, new(redis.Error)):
				again = append(again, c)
			default:
				err = conn.Foreign(failed, c.Keys[0], nil)
			}
		}
		pending = again
	}
	return lost, err
}

// changes returns calls for keys, up to MaxPlaces in each.
func (t *tables) changes(generation string, hashes []uint64, keys []int) (all []change) {
	byShard := map[uint32][]int{}
	for _, i := range keys {
		shard := t.shape.Place(hashes[i]).Shard
		byShard[shard] = append(byShard[shard], i)
	}
	for shard, keys := range byShard {
		prefix := t.prefix(int(shard), generation)
		for part := range slices.Chunk(keys, cuckootable.MaxPlaces) {
			places := make([]cuckootable.Place, len(part))
			for k, i := range part {
				places[k] = t.shape.Place(hashes[i])
			}
			memory := prefix + "@" + rand.Text()[:16]
			all = append(all, change{t.shape.Call(layout.ShardKey(prefix, 0, 0), memory, places...), part})
		}
	}
	return all
}

func (t *tables) Blank(ctx context.Context, generation string) error {
	blank := t.shape.Blank()
	return t.client.ForAll(ctx, t.count(), func(part int) []redis.Cmder {
		key := t.shard(part, generation)
		shard := cuckootable.Tagged(slices.Clone(blank), layout.TagOf(key))
		return []redis.Cmder{redis.NewStatusCmd(ctx, "set", key, shard)}
	}, nil)
}

func (t *tables) survey(ctx context.Context, generation string, count bool, f func(shard) error) error {
	one := t.shape
	one.Shards = 1
	first, last := one.SlotBytes()
	return t.client.ForAll(ctx, t.count(), func(part int) []redis.Cmder {
		key := t.shard(part, generation)
		cmds := []redis.Cmder{redis.NewIntSliceCmd(ctx, t.shape.Probe(key)...)}
		if count {
			cmds = append(cmds, redis.NewIntCmd(ctx, "bitcount", key, first, last))
		}
		return cmds
	}, func(part int, cmds []redis.Cmder) error {
		key := t.shard(part, generation)
		err := t.shape.Whole(cmds[0].(*redis.IntSliceCmd).Val(), layout.TagOf(key))
		s := shard{
			key: key, bytes: t.shape.Size(), share: 1 / float64(t.count()), lost: err != nil, err: notLost(key, err),
		}
		if count {
			n := one.Keys(int(cmds[1].(*redis.IntCmd).Val()))
			s.keys, s.rate = float64(n), one.Rate(uint64(n))
		}
		return f(s)
	})
}

func (t *tables) Discard(ctx context.Context, generation string) error {
	return t.client.ForAll(ctx, t.count(), func(part int) []redis.Cmder {
		return []redis.Cmder{redis.NewIntCmd(ctx, "unlink", t.shard(part, generation))}
	}, nil)
}

func (t *tables) Insert(ctx context.Context, generation string, hashes []uint64) error {
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

// Bulk adds keys to a generation: they are gathered here, in the memory that the set takes in Redis, and then joined
// with what others added meanwhile, shard by shard.
func (t *tables) Bulk(generation string) (add chain.Insert, finish func(context.Context) error) {
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
	err := t.client.ForAll(ctx, t.count(), func(part int) []redis.Cmder {
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
			return conn.Foreign(err, key, nil)
		}
		next, err := t.joined(key, gathered, old)
		if err != nil {
			return err
		}
		swap := cuckootable.Swap(ctx, key, old, next)
		t.client.Run(ctx, swap)
		swapped, err := swap.Int()
		if err != nil {
			return conn.Foreign(err, key, nil)
		}
		if swapped == 1 {
			return nil
		}
		read = redis.NewStringCmd(ctx, "get", key)
		t.client.Run(ctx, read)
	}
}

// joined returns a shard of the keys of two. In most cases the stored one has few.
func (t *tables) joined(key string, gathered, stored []byte) ([]byte, error) {
	own, err := t.shape.Open(cuckootable.Tagged(append([]byte(nil), gathered...), layout.TagOf(key)), layout.TagOf(key))
	if err != nil {
		return nil, err
	}
	others, err := t.shape.Open(stored, layout.TagOf(key))
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
