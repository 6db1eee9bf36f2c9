package cuckootable

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// A class is all that a shard knows of a key.
type class struct{ fingerprint, bucket uint32 }

func classOf(p Place) class { return class{p.Fingerprint, min(p.I, p.J)} }

// A twin is a shard in Redis, the same shard in memory, and the classes that must be in both.
type twin struct {
	stored  *stored
	table   *Table
	classes map[class]int
	places  map[class]Place
}

// apply makes a change in memory. A call of which a key found the shard full searches no more.
func (w *twin) apply(t require.TestingT, op string, p Place, full bool) Answer {
	c := classOf(p)
	w.places[c] = p
	if op == "addNew" && w.classes[c] > 0 {
		return Unchanged
	}
	if op == "remove" {
		require.Equal(t, w.classes[c] > 0, w.table.Remove(p))
		if w.classes[c] == 0 {
			return Unchanged
		}
		w.classes[c]--
		return Changed
	}
	if full && w.table.count(p.I, 0)+w.table.count(p.J, 0) == 0 && w.classes[c] < copies {
		return Full
	}
	switch err := w.table.Add(p); {
	case err == nil:
		w.classes[c]++
		return Changed
	case errors.Is(err, ErrTooManyCopies):
		require.Equal(t, copies, w.classes[c])
		return TooManyCopies
	default:
		require.ErrorIs(t, err, ErrFull)
		return Full
	}
}

var ops = map[string]conn.Script{"add": Add, "addNew": AddNew, "remove": Remove}

// change makes one change of several keys in memory and in Redis.
func (w *twin) change(ctx context.Context, t require.TestingT, name string, places []Place) {
	var want []Answer
	for _, p := range places {
		want = append(want, w.apply(t, name, p, slices.Contains(want, Full)))
	}
	require.Equal(t, want, w.stored.change(ctx, t, ops[name], places...), "%s %v", name, places)
	require.Equal(t, w.table.Bytes(), w.stored.bytes(ctx, t), "%s %v", name, places)
}

// check compares the shard with the classes that must be there, and that nothing else is.
func (w *twin) check(ctx context.Context, t require.TestingT) {
	used := 0
	for c, n := range w.classes {
		got, err := w.stored.copies(ctx, w.places[c])
		require.NoError(t, err)
		require.Equal(t, n, got)
		require.Equal(t, n, w.table.Copies(w.places[c]))
		used += n
	}
	require.Equal(t, used, w.stored.table(ctx, t).Used())
}

// Shards so small that keys collide and shards fill all the time. What scripts leave in Redis is,
// byte for byte, what the same changes leave in a table in memory.
func TestShardIsAMultiset(t *testing.T) { onServers(t, testShardIsAMultiset) }

func testShardIsAMultiset(t *testing.T, client *redis.Client) {
	ctx := t.Context()
	property.Check(t, func(t *rapid.T) {
		s := Shape{
			Bits:    rapid.SampledFrom([]uint32{8, 9, 12, 13, 16, 17, 23, 31, 32}).Draw(t, "bits"),
			Buckets: 2 * rapid.Uint32Range(1, 12).Draw(t, "half the buckets"),
			Shards:  1,
		}
		w := &twin{store(ctx, t, client, s), s.NewTable(), map[class]int{}, map[class]Place{}}
		keys := rapid.Uint64Range(0, rapid.SampledFrom([]uint64{3, 60, 1000}).Draw(t, "universe"))
		change := func(name string, least, most int) func(*rapid.T) {
			return func(t *rapid.T) {
				var places []Place
				for _, h := range rapid.SliceOfN(keys, least, most).Draw(t, "keys") {
					places = append(places, s.Place(h))
				}
				w.change(ctx, t, name, places)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add":        change("add", 1, 1),
			"addMany":    change("add", 1, 30),
			"addNew":     change("addNew", 1, 1),
			"addNewMany": change("addNew", 1, 30),
			"remove":     change("remove", 1, 1),
			"removeMany": change("remove", 1, 30),
			"":           func(t *rapid.T) { w.check(ctx, t) },
		})
	})
}
