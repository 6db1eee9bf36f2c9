package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// Schedules that are rare with real clocks, made certain by stepping between a client and its server.

func TestADroppedSetStaysAway(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := startServer(t)
	c, other := openClient(t, srv.Addr), openClient(t, srv.Addr)
	s, seen := wholeSet(t, c, "users", 1000, Options{}), openSet(t, other, "users", 1000, Options{})
	require.NoError(t, s.Drop(ctx))
	require.NoError(t, conn.Of(other).Watch.Poll(ctx))
	seen.refresh(canceled(t)) // as in an outage
	_, err := seen.Contains(ctx, key(1))
	require.ErrorIs(t, err, ErrDropped)
	require.NoError(t, srv.Client().Del(ctx, layout.ConfigKey("users")).Err()) // an hour later
	for range 3 {
		seen.refresh(ctx)
		require.ErrorIs(t, seen.Add(ctx, key(1)), ErrDropped)
	}
	require.Zero(t, srv.Client().DBSize(ctx).Val(), "no process makes a set again that was dropped")
}

// A set of other settings in its place ends a set for good, too.
func TestAReplacedSetStaysAway(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := startServer(t)
	c, other := openClient(t, srv.Addr), openClient(t, srv.Addr)
	s, seen := wholeSet(t, c, "users", 1000, Options{}), openSet(t, other, "users", 1000, Options{})
	require.NoError(t, s.Drop(ctx))
	replaced := openSet(t, c, "users", 1000, Options{PublicHash: true})
	require.NoError(t, conn.Of(other).Watch.Poll(ctx))
	require.ErrorIs(t, seen.Add(ctx, key(1)), ErrMismatch)
	seen.refresh(canceled(t))
	require.ErrorIs(t, seen.Add(ctx, key(1)), ErrMismatch)
	require.NoError(t, replaced.Close())
	require.NoError(t, srv.Client().Del(ctx, layout.ConfigKey("users")).Err())
	for range 2 {
		seen.refresh(ctx)
		require.ErrorIs(t, seen.Add(ctx, key(1)), ErrMismatch)
	}
	require.Zero(t, srv.Client().Exists(ctx, layout.ConfigKey("users")).Val())
}

// canceled returns a context in which no command is sent.
func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A line that was read from a server that is not trusted says nothing, though it was trusted when the answer came.
func TestTrustDoesNotReachBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := startServer(t)
	c, other := openClient(t, srv.Addr), openClient(t, srv.Addr)
	s, seen := wholeSet(t, c, "users", 100, Options{}), openSet(t, other, "users", 100, Options{})
	g := s.view.Load().cfg.Generation
	trusted := srv.Client().SMembers(ctx, trustedKey("users", g)).Val()
	require.NoError(t, srv.Client().Del(ctx, trustedKey("users", g)).Err()) // a failover that lost key 1
	seen.refresh(ctx)
	conn.Of(other).RDB.AddHook(&gate{match: named("getrange"), after: firstOnly(func() { // and what mends it
		require.NoError(t, s.Add(ctx, key(1)))
		require.NoError(t, srv.Client().SAdd(ctx, trustedKey("users", g), trusted).Err())
		seen.refresh(ctx)
	})})
	maybe, err := seen.Contains(ctx, key(1))
	require.True(t, maybe, "the key was acknowledged before the failover: %v", err)
}

// A replica that was promoted knows less of a chain than a process remembers.
func TestAddsGoWhereAFailoverLeftTheChain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, forget := range map[string]func(*redis.Client, []string){
		"the layer": func(rdb *redis.Client, shards []string) {
			for _, k := range shards[1:] {
				require.NoError(t, rdb.Del(ctx, k).Err())
			}
			require.NoError(t, rdb.Del(ctx, rdb.Keys(ctx, "*:m*").Val()...).Err())
		},
		"only that it is there": func(*redis.Client, []string) {},
	} {
		t.Run(name, func(t *testing.T) {
			srv := startServer(t)
			s := wholeSet(t, openClient(t, srv.Addr), "users", 100, Options{Growth: 3})
			require.NoError(t, s.MAdd(ctx, keysTo(250)))
			holds(t, s, keysTo(250)...)
			shards := shardsOf(t, s)
			require.Greater(t, len(shards), 1, "the set has grown")
			for layer := 1; layer < config.MaxLayers; layer++ {
				require.NoError(t, srv.Client().SetBit(ctx, shards[0], int64(layout.LayerBit(layer)), 0).Err())
			}
			forget(srv.Client(), shards)
			mended := wholeSet(t, openClient(t, srv.Addr), "users", 100, Options{Growth: 3})
			require.NoError(t, mended.MAdd(ctx, keysTo(250))) // as a refill does

			for i := 250; i < 270; i += 2 {
				require.NoError(t, s.Add(ctx, key(i)))
				_, err := s.AddNew(ctx, key(i+1))
				require.NoError(t, err)
			}
			late := wholeSet(t, openClient(t, srv.Addr), "users", 100, Options{Growth: 3})
			for i := range 270 {
				maybe, err := late.Contains(ctx, key(i))
				require.True(t, maybe, "key %d: %v", i, err)
			}
		})
	}
}

// A process that was late to make a layer does not make it again when it was lost since.
func TestALateProcessDoesNotHideALoss(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"msetnx", "watch"} {
		t.Run(step, func(t *testing.T) {
			ctx := t.Context()
			srv := startServer(t)
			c, late := openClient(t, srv.Addr), openClient(t, srv.Addr)
			s := wholeSet(t, c, "users", 100, Options{Growth: 3})
			slow := openSet(t, late, "users", 100, Options{Growth: 3})
			v := s.view.Load()
			seat := v.content.(partitions).Seats(v.cfg.Generation, []uint64{0})[0]
			var lost [][]byte
			meanwhile := firstOnly(func() {
				for i := 0; seat.Known.Load() == 0; i++ {
					require.NoError(t, s.Add(ctx, key(i)))
				}
				for i := range 20 {
					lost = append(lost, fmt.Appendf(nil, "lost %d", i))
				}
				require.NoError(t, s.MAdd(ctx, lost))
				keys := srv.Client().Keys(ctx, "sk:{users/0}:*:1:*").Val() // the marker too
				require.NoError(t, srv.Client().Del(ctx, keys...).Err())
			})
			conn.Of(late).RDB.AddHook(&gate{match: named(step), before: meanwhile})
			for i := 0; lost == nil; i++ {
				_ = slow.Add(ctx, fmt.Appendf(nil, "slow %d", i))
			}
			for _, s := range []*Set{slow, s} {
				for _, k := range lost {
					maybe, err := s.Contains(ctx, k)
					require.True(t, maybe, "%q: %v", k, err)
				}
			}
		})
	}
}

// Redis may evict what was written for a merge before the merge.
func TestALoadThatLostAPartFails(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := startServer(t)
	c := openClient(t, srv.Addr)
	s := wholeSet(t, c, "users", 1000, Options{})
	local, err := s.Local()
	require.NoError(t, err)
	local.AddHash(s.Hash(key(1)))
	evict := true
	conn.Of(c).RDB.AddHook(&gate{match: named("bitop"), swap: func(cmds []redis.Cmder) (all []redis.Cmder) {
		for _, cmd := range cmds {
			all = append(all, cmd)
			if k, ok := cmd.Args()[1].(string); ok && evict && cmd.Name() == "set" && strings.Count(k, ":") > 3 {
				all = append(all, redis.NewIntCmd(ctx, "del", k))
			}
		}
		return all
	}})
	require.Error(t, s.Import(ctx, local))
	require.Error(t, s.Load(ctx, sourceOf(key(1))))
	evict = false
	require.NoError(t, s.Import(ctx, local))
	holds(t, s, key(1))
}

// A program removes the configuration, and another makes the set again before all have noticed.
func TestAnAddCountsOnceNobodyAsksWhatItWasNotAddedTo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := startServer(t)
	asker, adder, third := openClient(t, srv.Addr), openClient(t, srv.Addr), openClient(t, srv.Addr)
	asking := wholeSet(t, asker, "users", 1000, Options{})
	adding := openSet(t, adder, "users", 1000, Options{})
	for i, add := range []func(k []byte) error{
		func(k []byte) error { return openSet(t, third, "users", 1000, Options{}).Add(ctx, k) },
		func(k []byte) error { adding.refresh(ctx); return adding.Add(ctx, k) },
	} {
		conn.Of(asker).Watch.Remove(poller{&asking.lineage}) // its polls are as late as they may be
		require.NoError(t, srv.Client().Del(ctx, layout.ConfigKey("users")).Err())
		asking.view.Store(func() *view { v := *asking.view.Load(); v.confirmed = time.Now(); return &v }())
		k := key(i)
		if err := add(k); err == nil {
			conn.Of(asker).Watch.Add(poller{&asking.lineage})
			maybe, err := asking.Contains(ctx, k)
			require.True(t, maybe, "key %d was acknowledged: %v", i, err)
		}
		if i == 0 {
			require.NoError(t, srv.Client().FlushAll(ctx).Err())
			asking = wholeSet(t, asker, "users", 1000, Options{})
			adding.refresh(ctx)
		}
	}
}

func TestALockThatIsNoneFailsALoad(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	s := openSet(t, openClient(t, srv.Addr), "users", 1000, Options{})
	for _, args := range [][]any{{"set", "forever"}, {"sadd", "member"}} {
		require.NoError(t, srv.Client().Do(t.Context(), args[0], layout.ConfigKey("users")+":lock", args[1]).Err())
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := s.Load(ctx, sourceOf())
		cancel()
		require.ErrorIs(t, err, ErrForeign)
		require.NoError(t, srv.Client().Del(t.Context(), layout.ConfigKey("users")+":lock").Err())
	}
}

// Of those who add a key while a generation is loaded, the first is told so, though others may be
// faster to reach what is loaded.
func TestAddNewHasAWinnerDuringALoad(t *testing.T) {
	t.Parallel()
	for name, growth := range map[string]float64{"fixed": 0, "growing": 3} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			srv := startServer(t)
			winner, loser := openClient(t, srv.Addr), openClient(t, srv.Addr)
			first := wholeSet(t, winner, "users", 1000, Options{Growth: growth})
			second := openSet(t, loser, "users", 1000, Options{Growth: growth})
			building, _, err := first.makeBlank(ctx, first.view.Load())
			require.NoError(t, err)
			_, err = first.publish(ctx, first.view.Load().cfg, func(c *config.Config) { c.Building = building })
			require.NoError(t, err)
			second.refresh(ctx)
			_, err = first.AddNew(ctx, key(0)) // the server knows the script from then on
			require.NoError(t, err)
			adds := map[bool]string{false: "bitfield", true: "evalsha"}[growth != 0]
			lost := true
			conn.Of(winner).RDB.AddHook(&gate{match: named(adds), after: firstOnly(func() {
				fresh, err := second.AddNew(ctx, key(1))
				require.NoError(t, err)
				lost = !fresh
			})})
			fresh, err := first.AddNew(ctx, key(1))
			require.NoError(t, err)
			require.True(t, fresh && lost, "%v %v", fresh, lost)
		})
	}
}

// A master that a partition cut off does not know what its successor was told.
func TestAMasterThatWasCutOffDoesNotSayNo(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	ctx := t.Context()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	c := openClient(t, master.Addr)
	s := wholeSet(t, c, "users", 1000, Options{})
	k := absentKey(t, s)
	master.AwaitReplicas(ctx, 1)
	replica.Promote(ctx)
	require.NoError(t, openSet(t, openClient(t, replica.Addr), "users", 1000, Options{}).Add(ctx, k))
	for option, value := range map[string]string{"min-replicas-to-write": "1", "min-replicas-max-lag": "1"} {
		require.NoError(t, master.Client().ConfigSet(ctx, option, value).Err())
	}
	until(t, func() bool {
		return redis.HasErrorPrefix(master.Client().Set(ctx, "k", 1, 0).Err(), "NOREPLICAS")
	}, "the master takes no writes")
	_ = conn.Of(c).Watch.Poll(ctx)
	maybe, err := s.Contains(ctx, k)
	require.True(t, maybe, "the successor has the key")
	require.ErrorIs(t, err, ErrUnavailable)
}

// A pause after a load that failed ends when the server is back, however long it was to be.
func TestAServerThatIsBackEndsThePauseOfRepairs(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	srv := redistest.Start(t)
	c := openClient(t, srv.Addr)
	s := wholeSet(t, c, "users", 1000, Options{})
	srv.Kill()
	until(t, conn.Of(c).Watch.Lacks, "the server is away")
	back, err := s.rest(t.Context(), 0, true)
	require.NoError(t, err)
	require.False(t, back, "it is still away")
	ended := make(chan error, 1)
	go func() {
		back, err := s.rest(t.Context(), patience, true)
		if !back && err == nil {
			err = errors.New("the pause went to its end")
		}
		ended <- err
	}()
	srv.Restart()
	require.NoError(t, <-ended)
	back, err = s.rest(t.Context(), 0, false)
	require.NoError(t, err)
	require.False(t, back)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.rest(ctx, patience, false)
	require.ErrorIs(t, err, context.Canceled)
}

// A caller that waits for a set that is not watched any more is told so.
func TestReadyEndsWithItsClient(t *testing.T) {
	t.Parallel()
	c := openClient(t, startServer(t).Addr)
	s := openSet(t, c, "users", 1000, Options{}) // was never loaded
	r, err := s.Mirror(t.Context(), nil)
	require.NoError(t, err)
	waits := make(chan error, 2)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { waits <- s.Ready(ctx) }()
	go func() { waits <- r.Ready(ctx) }()
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-waits, ErrClosed)
	require.NoError(t, r.Close())
	require.ErrorIs(t, <-waits, ErrClosed)
}
