package redisfilter

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// eachMove calls f with each way in which a value gets to another key by hand, and with what the keys differ in.
func eachMove(t *testing.T, rdb *redis.Client, f func(t *testing.T, differs string, move func(from, to string))) {
	t.Helper()
	for name, move := range map[string]func(ctx context.Context, from, to string) error{
		"copy": func(ctx context.Context, from, to string) error { return rdb.Copy(ctx, from, to, 0, true).Err() },
		"restore": func(ctx context.Context, from, to string) error {
			return rdb.RestoreReplace(ctx, to, 0, rdb.Dump(ctx, from).Val()).Err()
		},
		"rename": func(ctx context.Context, from, to string) error { return rdb.Rename(ctx, from, to).Err() },
	} {
		for _, differs := range []string{"partition", "generation", "set"} {
			t.Run(name+"/"+differs, func(t *testing.T) {
				f(t, differs, func(from, to string) { require.NoError(t, move(t.Context(), from, to)) })
			})
		}
	}
}

// A sharedSet is what Set and Cuckoo have in common.
type sharedSet interface {
	MAdd(ctx context.Context, keys [][]byte) error
	MAddNew(ctx context.Context, keys [][]byte) ([]bool, error)
	Contains(ctx context.Context, key []byte) (bool, error)
	Info(ctx context.Context) (Info, error)
	Close() error
	self() *lineage
}

func (l *lineage) self() *lineage { return l }

// sharedSets open sets of four partitions in use that do not mend themselves.
var sharedSets = map[string]func(t *testing.T, c *Client, name string) sharedSet{
	"fixed": func(t *testing.T, c *Client, name string) sharedSet {
		return wholeSet(t, c, name, 400, Options{Partitions: 4})
	},
	"growing": func(t *testing.T, c *Client, name string) sharedSet {
		return wholeSet(t, c, name, 400, Options{Partitions: 4, Growth: 3})
	},
	"cuckoo": func(t *testing.T, c *Client, name string) sharedSet {
		for _, empty := range []bool{true, false} {
			k, err := NewCuckoo(t.Context(), c, name, 1000, 0.001, quiet(Options{Partitions: 4, StartEmpty: empty}))
			require.NoError(t, err)
			if !empty {
				t.Cleanup(func() { _ = k.Close() })
				return k
			}
			require.NoError(t, k.Close())
		}
		return nil
	},
}

// neverDenied requires that no key is denied, and that some answers come with an error.
func neverDenied(t *testing.T, keys [][]byte, contains func(context.Context, []byte) (bool, error)) {
	t.Helper()
	var noticed error
	for _, k := range keys {
		maybe, err := contains(t.Context(), k)
		require.True(t, maybe, "%q: %v", k, err)
		if err != nil {
			noticed = err
		}
	}
	require.Error(t, noticed)
}

// baseShards returns the keys of the first shard of each partition.
func baseShards(c content, generation string) (all []string) {
	switch c := c.(type) {
	case partitions:
		for part := range c.Count {
			all = append(all, layout.ShardKey(c.Prefix(part, generation), 0, 0))
		}
	case *tables:
		for part := range c.count() {
			all = append(all, c.shard(part, generation))
		}
	}
	return all
}

// placeAndStranger returns the key of a shard of l, and that of one whose partition, generation or set differs.
func placeAndStranger(t *testing.T, l, other *lineage, differs string) (place, stranger string) {
	t.Helper()
	v := l.view.Load()
	own := baseShards(v.content, v.cfg.Generation)
	switch differs {
	case "partition":
		return own[1], own[0]
	case "generation":
		g := config.NewGeneration()
		require.NoError(t, v.content.Blank(t.Context(), g))
		return own[1], baseShards(v.content, g)[1]
	}
	v = other.view.Load()
	return own[1], baseShards(v.content, v.cfg.Generation)[1]
}

func TestAShardOfAnotherKeyDeniesNothing(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	c := openClient(t, srv.Addr)
	keys := keysTo(300)
	for kind, open := range sharedSets {
		t.Run(kind, func(t *testing.T) {
			eachMove(t, srv.Client(), func(t *testing.T, differs string, move func(from, to string)) {
				name := strings.ReplaceAll(t.Name(), "/", "-")
				s, other := open(t, c, name), open(t, c, name+"-other")
				require.NoError(t, s.MAdd(t.Context(), keys))
				place, stranger := placeAndStranger(t, s.self(), other.self(), differs)
				move(stranger, place)
				if kind != "growing" {
					s.self().look(t.Context())
				}
				neverDenied(t, keys, s.Contains)
				fresh, err := s.MAddNew(t.Context(), keys)
				require.Error(t, err)
				require.NotContains(t, fresh, true)
				_, err = s.Info(t.Context())
				require.ErrorIs(t, err, ErrForeign)
				require.ErrorContains(t, err, place)
			})
		})
	}
}

// Lookups read the header of layer 0 only.
func TestALookFindsALateShardOfAnotherKey(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	s := wholeSet(t, openClient(t, srv.Addr), "users", 400, Options{Partitions: 4, Growth: 3})
	keys := keysTo(2000)
	require.NoError(t, s.MAdd(t.Context(), keys))
	holds(t, s, keys...)
	var late []string
	for _, key := range shardsOf(t, s) {
		if strings.Contains(key, ":1:") {
			late = append(late, key)
		}
	}
	require.Greater(t, len(late), 1)
	require.NoError(t, srv.Client().Copy(t.Context(), late[0], late[1], 0, true).Err())
	s.look(t.Context())
	neverDenied(t, keys, s.Contains)
}

// What a look finds is mended like a loss, and the set says no again.
func TestASetMendsAShardOfAnotherKey(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	keys := keysTo(300)
	s := wholeSet(t, openClient(t, srv.Addr), "users", 400, Options{Partitions: 4, Source: sourceOf(keys...)})
	require.NoError(t, s.Load(t.Context(), nil))
	shards := shardsOf(t, s)
	require.NoError(t, srv.Client().Del(t.Context(), shards[0]).Err(), "a loss does not hide it")
	require.NoError(t, srv.Client().Copy(t.Context(), shards[2], shards[3], 0, true).Err())
	g := s.view.Load().cfg.Generation
	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	looking.Go(func() { s.keepLooking(ctx, 0) })
	until(t, func() bool { return s.strayIn(g) != nil }, "a look finds it")
	stop()
	looking.Wait()
	require.ErrorIs(t, s.strayIn(g), ErrForeign)
	require.NoError(t, s.Ready(t.Context()))
	holds(t, s, keys...)
	absentKey(t, s)
}

// A shard that an earlier release made has no tag.
func TestShardsWithoutATagAreWhole(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	c := openClient(t, srv.Addr)
	keys := keysTo(300)
	for kind, open := range sharedSets {
		t.Run(kind, func(t *testing.T) {
			s := open(t, c, kind)
			v := s.self().view.Load()
			for _, key := range baseShards(v.content, v.cfg.Generation) {
				require.NoError(t, srv.Client().SetRange(t.Context(), key, layout.TagAt, "\x00\x00\x00\x00").Err())
			}
			fresh, err := s.MAddNew(t.Context(), keys)
			require.NoError(t, err)
			require.Contains(t, fresh, true)
			s.self().look(t.Context())
			for _, k := range keys {
				maybe, err := s.Contains(t.Context(), k)
				require.NoError(t, err)
				require.True(t, maybe)
			}
			_, err = s.Info(t.Context())
			require.NoError(t, err)
		})
	}
}

// Programs of different versions agree about tags, so that they never change.
func TestTagsNeverChange(t *testing.T) {
	tags := map[uint32]bool{}
	for _, key := range []string{
		"sk:{users/17}:abcdefghij:0", "sk:{users/18}:abcdefghij:0", "sk:{users/17}:abcdefghik:0",
		"sk:{users/17}:abcdefghij:1:0", "sk:{users/17}:abcdefghij:1:1", "sk:{feed/ada}:abcdefghij:w5:0",
	} {
		require.False(t, tags[layout.TagOf(key)], "%s", key)
		tags[layout.TagOf(key)] = true
	}
	require.Equal(t, uint32(0x68238dc2), layout.TagOf("sk:{users/17}:abcdefghij:0"))
	require.Equal(t, layout.TagOf("sk:{users/17}:abcdefghij:0"), layout.TagOf("sk:{a/b/17}:abcdefghij:0"),
		"the name does not count")
	require.True(t, layout.HasTag(0, "sk:{users/17}:abcdefghij:0"))
}
