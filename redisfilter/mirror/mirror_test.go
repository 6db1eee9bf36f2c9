package mirror_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
	"github.com/siftkv/siftkv/redisfilter/mirror"
)

// patience is longer than go test lets a test run.
const patience = 24 * time.Hour

// noKeys is a source of none.
func noKeys(context.Context, time.Time, func(...[]byte) error) error { return nil }

// patient are options of sets in tests: a busy machine is no failure.
func patient(o redisfilter.Options) *redisfilter.Options {
	o.Timeout = patience
	o.Grace = time.Millisecond
	return &o
}

// process returns a set as another process would have it.
func process(t testing.TB, addrs []string, name string, n int, rate float64, o *redisfilter.Options) *redisfilter.Set {
	return connected(t, &redis.UniversalOptions{Addrs: addrs}, name, n, rate, o)
}

func connected(t testing.TB, to *redis.UniversalOptions, name string, n int, rate float64,
	o *redisfilter.Options) *redisfilter.Set {
	ctx := context.Background()
	c := redistest.Opened(t, redisfilter.Open, redisfilter.ErrUnavailable, to)
	t.Cleanup(func() { _ = c.Close() })
	s, err := redisfilter.New(ctx, c, name, n, rate, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mirrorOf(t testing.TB, s *redisfilter.Set, o *mirror.Options) *mirror.Mirror {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, s.Ready(ctx))
	r, err := s.Mirror(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	require.NoError(t, r.Ready(ctx))
	return r
}

// until waits for a condition, on the test's own goroutine.
func until(t testing.TB, condition func() bool, what string) {
	t.Helper()
	redistest.Await(t, what, condition)
}

// local waits until the mirror answers without a trip.
func local(t testing.TB, r *mirror.Mirror, key []byte, want bool) {
	t.Helper()
	until(t, func() bool {
		before := r.Stats()
		maybe, err := r.Contains(context.Background(), key)
		require.NoError(t, err)
		require.Equal(t, want, maybe)
		return r.Stats().Asked == before.Asked
	}, "the answer still comes from redis")
}

// denies waits until the mirror has said no without a trip: on a slow machine its leases are over at times.
func denies(t testing.TB, r *mirror.Mirror) {
	t.Helper()
	i := 0
	until(t, func() bool {
		i--
		_, err := r.Contains(context.Background(), keyOf(i))
		require.NoError(t, err)
		return r.Stats().No > 0
	}, "it says no without a trip")
}

func keyOf(i int) []byte { return appendKey(nil, i) }

func appendKey(b []byte, i int) []byte { return fmt.Appendf(b, "key %d", i) }

var shapesOfSets = map[string]redisfilter.Options{
	"fixed":       {StartEmpty: true, Partitions: 7},
	"growing":     {StartEmpty: true, Growth: 4},
	"small, wide": {StartEmpty: true, Growth: 10, Partitions: 3, ShardBytes: 400},
}

func TestMirrorKnowsOwnKeysAtOnce(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	for name, o := range shapesOfSets {
		t.Run(name, func(t *testing.T) {
			r := mirrorOf(t, process(t, []string{redistest.Start(t).Addr}, "s", 300, 0.001, patient(o)), nil)
			for i := 0; i < 3000; i += 3 {
				require.NoError(t, r.Add(ctx, keyOf(i)))
				_, err := r.AddNew(ctx, keyOf(i+1))
				require.NoError(t, err)
				require.NoError(t, r.MAdd(ctx, [][]byte{keyOf(i + 2)}))
				for _, k := range []int{i, i + 1, i + 2, i / 2} {
					maybe, err := r.Contains(ctx, keyOf(k))
					require.NoError(t, err)
					require.True(t, maybe, "key %d of %d", k, i)
				}
			}
			all := make([][]byte, 3000)
			for i := range all {
				all[i] = keyOf(i)
			}
			maybe, err := r.MContains(ctx, all)
			require.NoError(t, err)
			require.NotContains(t, maybe, false)
			require.Positive(t, r.Stats().Yes)
		})
	}
}

// Another process adds; a lease later no mirror says no, whether a key went to the layer that the
// mirror knows or to one that was just made.
func TestMirrorKnowsOthersKeysAfterTheLease(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	for name, o := range shapesOfSets {
		t.Run(name, func(t *testing.T) {
			addr := []string{redistest.Start(t).Addr}
			const lease = 20 * time.Millisecond
			r := mirrorOf(t, process(t, addr, "s", 300, 0.001, patient(o)),
				&mirror.Options{Lease: lease, Refresh: time.Millisecond, Poll: time.Millisecond})
			other := process(t, addr, "s", 300, 0.001, patient(o))
			const keys = 6000
			acks := make([]time.Time, keys)
			var added atomic.Int64
			var adder sync.WaitGroup
			adder.Go(func() {
				for i := range keys {
					if err := other.Add(ctx, keyOf(i)); err != nil {
						t.Error(err)
						break
					}
					acks[i] = time.Now()
					added.Add(1)
				}
			})
			defer adder.Wait()
			for i := range keys {
				until(t, func() bool { return int(added.Load()) > i && time.Since(acks[i]) > lease }, "no add")
				for _, k := range []int{i, i / 2} {
					maybe, err := r.Contains(ctx, keyOf(k))
					require.NoError(t, err)
					require.True(t, maybe, "key %d, added %v ago", k, time.Since(acks[k]))
				}
				_, err := r.Contains(ctx, keyOf(-i-1))
				require.NoError(t, err)
			}
			local(t, r, keyOf(1), true)
			denies(t, r)
			t.Logf("%+v", r.Stats())
		})
	}
}

func TestMirrorOfAnotherGeneration(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	addr := []string{redistest.Start(t).Addr}
	r := mirrorOf(t, process(t, addr, "s", 5000, 0.0001, patient(redisfilter.Options{StartEmpty: true})), nil)
	other := process(t, addr, "s", 5000, 0.0001, patient(redisfilter.Options{StartEmpty: true}))
	require.NoError(t, r.Add(ctx, keyOf(1)))
	local(t, r, keyOf(1), true)
	local(t, r, keyOf(2), false)
	before := mirror.Table(r).Generation()
	require.NoError(t, other.Load(ctx, func(_ context.Context, _ time.Time, add func(...[]byte) error) error {
		return add(keyOf(2))
	}))
	maybe, err := r.Contains(ctx, keyOf(2))
	require.NoError(t, err)
	require.True(t, maybe, "the generation that lacks it may not answer any more")
	until(t, func() bool {
		now := mirror.Table(r)
		return now != nil && now.Generation() != before
	}, "it keeps to the old generation")
	local(t, r, keyOf(2), true)
	until(t, func() bool { maybe, err := r.Contains(ctx, keyOf(1)); return err == nil && !maybe }, "still there")
	local(t, r, keyOf(1), false)
	require.EqualValues(t, r.Stats().Bytes, mirror.Used(r), "the old copies were given up")
}

func TestMirrorOfWhatWasLost(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	for name, lose := range map[string]func(c *redis.Client, shard string){
		"deleted": func(c *redis.Client, shard string) { c.Del(ctx, shard) },
		"expired": func(c *redis.Client, shard string) { c.PExpire(ctx, shard, time.Millisecond) },
		"zeros": func(c *redis.Client, shard string) {
			c.Set(ctx, shard, make([]byte, c.StrLen(ctx, shard).Val()), 0)
		},
		"shorter": func(c *redis.Client, shard string) { c.Set(ctx, shard, "sift", 0) },
		"a list":  func(c *redis.Client, shard string) { c.Del(ctx, shard); c.LPush(ctx, shard, "x") },
		"flushed": func(c *redis.Client, _ string) { c.FlushAll(ctx) },
		"header":  func(c *redis.Client, shard string) { c.SetRange(ctx, shard, 0, "shift") },
		"replaced": func(c *redis.Client, shard string) {
			n := c.StrLen(ctx, shard).Val()
			c.Del(ctx, shard)
			c.SetBit(ctx, shard, 8*n-8, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			s := process(t, []string{server.Addr}, "s", 100, 0.0001, patient(redisfilter.Options{Growth: 10}))
			require.NoError(t, s.Load(ctx, noKeys))
			r := mirrorOf(t, s, nil)
			require.NoError(t, r.Add(ctx, keyOf(1)))
			local(t, r, keyOf(2), false)
			lose(server.Client(), mirror.Table(r).Parts[0].Prefix+"0")
			until(t, func() bool {
				maybe, err := r.Contains(ctx, keyOf(2))
				require.Equal(t, maybe, err != nil)
				return maybe
			}, "it says no for keys that may be lost")
			for range 1000 { // and stays with it
				maybe, err := r.Contains(ctx, keyOf(2))
				require.True(t, maybe)
				require.Error(t, err)
			}
		})
	}
}

func TestMirrorWhileRedisIsAway(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	o := patient(redisfilter.Options{StartEmpty: true})
	s := process(t, []string{server.Addr}, "s", 100, 0.0001, o)
	r := mirrorOf(t, s, nil)
	require.NoError(t, r.Add(ctx, keyOf(1)))
	local(t, r, keyOf(2), false)
	server.Stop()
	defer server.Continue()
	contains := func(key []byte) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		return r.Contains(ctx, key)
	}
	until(t, func() bool { maybe, _ := contains(keyOf(2)); return maybe }, "it goes on to say no")
	maybe, err := contains(keyOf(2))
	require.True(t, maybe)
	require.ErrorIs(t, err, redisfilter.ErrUnavailable)
	maybe, err = contains(keyOf(1))
	require.NoError(t, err, "its bits were seen: it is a maybe whatever Redis would say")
	require.True(t, maybe)
}

func TestMirrorOfADroppedSet(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	addr := []string{redistest.Start(t).Addr}
	r := mirrorOf(t, process(t, addr, "s", 100, 0.01, patient(redisfilter.Options{StartEmpty: true})), nil)
	require.NoError(t, r.Add(ctx, keyOf(1)))
	require.NoError(t, process(t, addr, "s", 100, 0.01, patient(redisfilter.Options{StartEmpty: true})).Drop(ctx))
	until(t, func() bool { return mirror.Table(r) == nil }, "the copies are kept")
	_, err := r.Contains(ctx, keyOf(1))
	require.ErrorIs(t, err, redisfilter.ErrDropped)
	require.ErrorIs(t, r.Add(ctx, keyOf(1)), redisfilter.ErrDropped)
	require.Zero(t, r.Stats().Bytes)
	require.Zero(t, mirror.Used(r))
}

func TestMirrorKeepsToItsMemory(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	o := patient(redisfilter.Options{StartEmpty: true})
	s := process(t, []string{redistest.Start(t).Addr}, "s", 30_000, 0.01, o)
	r := mirrorOf(t, s, &mirror.Options{MaxBytes: 20_000})
	require.LessOrEqual(t, r.Stats().Bytes, int64(20_000))
	require.Positive(t, r.Stats().Bytes)
	for i := range 1000 {
		require.NoError(t, r.Add(ctx, keyOf(i)))
		maybe, err := r.Contains(ctx, keyOf(i))
		require.NoError(t, err)
		require.True(t, maybe)
		_, err = r.Contains(ctx, keyOf(-i))
		require.NoError(t, err)
	}
	require.Positive(t, r.Stats().Asked)
	denies(t, r)
	require.NoError(t, r.Close())
	maybe, err := r.Contains(ctx, keyOf(1))
	require.NoError(t, err)
	require.True(t, maybe)
	require.Zero(t, mirror.Used(r))
}

// In a cluster each master has its mirror. One of them dies, its replica is promoted, another process
// refills it; no key is ever absent that was acknowledged a lease ago.
func TestMirrorInAClusterThatFailsOver(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t, 3, 1)
	var mu sync.Mutex
	var database [][]byte
	o := patient(redisfilter.Options{StartEmpty: true, Partitions: 24, Source: func(
		_ context.Context, _ time.Time, add func(...[]byte) error,
	) error {
		mu.Lock()
		defer mu.Unlock()
		return add(database...)
	}})
	r := mirrorOf(t, process(t, cluster.Addrs(), "s", 3000, 0.0001, o), nil)
	other := process(t, cluster.Addrs(), "s", 3000, 0.0001, o)
	require.Len(t, mirror.Table(r).Servers(), 3)
	for i := range 500 {
		mu.Lock()
		database = append(database, keyOf(i))
		mu.Unlock()
		if i%2 == 0 {
			require.NoError(t, r.Add(ctx, keyOf(i)))
		} else {
			require.NoError(t, other.Add(ctx, keyOf(i)))
		}
	}
	added := time.Now()
	until(t, func() bool { return time.Since(added) > time.Second }, "the lease is not over")
	check := func() (certain int) {
		for i := range 500 {
			maybe, _ := r.Contains(ctx, keyOf(i))
			require.True(t, maybe, "key %d", i)
		}
		before := r.Stats().No
		for i := range 100 {
			_, _ = r.Contains(ctx, keyOf(-i-1))
		}
		return int(r.Stats().No - before)
	}
	until(t, func() bool { return check() != 0 }, "it says no without a trip")

	part := mirror.Table(r).Parts[5]
	shard := part.Prefix + "0"
	dead := cluster.KillMasterOf(ctx, shard)
	cluster.AwaitFailover(ctx, shard, dead)
	until(t, func() bool {
		check()
		now := mirror.Table(r)
		return now != nil && now.Parts[5] != nil && now.Parts[5].Identity != part.Identity && check() >= 95
	}, "it does not recover")
	require.Len(t, mirror.Table(r).Servers(), 3)
}

// A replica server that lacks acknowledged keys takes its master's place and address. It is refilled
// and trusted again; what the Mirror copied of it before that may not be relied upon.
func TestMirrorOfAServerThatForgotKeys(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	master := redistest.Start(t)
	standby := redistest.StartReplica(t, master)
	var target atomic.Pointer[string]
	target.Store(&master.Addr)
	virtual := &redis.UniversalOptions{
		Addrs: []string{"virtual:1"},
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, *target.Load())
		},
	}
	const keys = 300
	slow := make(chan struct{}) // lets the refill end
	o := patient(redisfilter.Options{Source: func(_ context.Context, _ time.Time, add func(...[]byte) error) error {
		for i := range keys {
			if *target.Load() == standby.Addr && i == keys/2 {
				<-slow
			}
			if err := add(keyOf(i)); err != nil {
				return err
			}
		}
		return nil
	}})
	r := mirrorOf(t, connected(t, virtual, "s", 1000, 0.0001, o), nil)
	master.AwaitReplicas(ctx, 1)
	local(t, r, keyOf(-1), false)
	shard := mirror.Table(r).Parts[0].Prefix + "0"

	standby.Promote(ctx)
	lines := clearLines(t, standby, shard)
	require.NoError(t, standby.Client().Do(ctx, "SETRANGE", shard, layout.LineOffset(0), lines).Err())
	target.Store(&standby.Addr)
	master.Kill()
	check := func() (certain int) {
		for i := range keys {
			maybe, _ := r.Contains(ctx, keyOf(i))
			require.True(t, maybe, "key %d", i)
		}
		before := r.Stats().No
		for i := range keys {
			_, _ = r.Contains(ctx, keyOf(-i-1))
		}
		return int(r.Stats().No - before)
	}
	until(t, func() bool { return check() == 0 }, "it says no")
	close(slow)
	until(t, func() bool { return check() >= keys*9/10 }, "it does not recover")
}

// clearLines returns the lines of a shard without any key.
func clearLines(t *testing.T, server *redistest.Server, shard string) string {
	data, err := server.Client().Get(context.Background(), shard).Bytes()
	require.NoError(t, err)
	for i := range data {
		if i < layout.HeaderLen || (i-layout.HeaderLen)%64 != layout.MarkByte {
			data[i] = 0
		}
		if (i-layout.HeaderLen)%64 == layout.MarkByte {
			data[i] = layout.MarkBit
		}
	}
	return string(data[layout.HeaderLen:])
}

// Whatever lies in Redis, the Mirror says no only where the Set does.
func TestMirrorAgreesWithTheSetAboutAnyBytes(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	o := patient(redisfilter.Options{Growth: 10})
	s := process(t, []string{server.Addr}, "s", 100, 0.01, o)
	require.NoError(t, s.Load(ctx, noKeys))
	r := mirrorOf(t, s, &mirror.Options{Refresh: time.Millisecond, Poll: time.Millisecond})
	shard := mirror.Table(r).Parts[0].Prefix + "0"
	blank, err := server.Client().Get(ctx, shard).Bytes()
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	agreed := 0
	for round := range 200 {
		data := slices.Clone(blank)
		for range random.IntN(20) {
			data[random.IntN(len(data))] ^= byte(1 << random.IntN(8))
		}
		if round%10 == 0 {
			data = data[:random.IntN(len(data))]
		}
		require.NoError(t, server.Client().Set(ctx, shard, data, 0).Err())
		copied := len(data) == len(blank) && layout.HasTag(binary.LittleEndian.Uint32(data[layout.TagAt:]), shard)
		until(t, func() bool {
			view, fresh := mirror.Table(r).Parts[0].Entry(0, 0).Load()
			got := make([]byte, view.Len())
			view.ReadAt(got, 0)
			return string(got) == string(data) && fresh || !copied && view.Len() == 0
		}, "not fetched")
		for i := range 100 {
			switch mirror.Table(r).Ask(s.Hash(keyOf(i))) {
			case layout.Absent:
				maybe, err := s.Contains(ctx, keyOf(i))
				require.NoError(t, err)
				require.False(t, maybe, "round %d, key %d", round, i)
				agreed++
			case layout.Present:
				maybe, _ := s.Contains(ctx, keyOf(i))
				require.True(t, maybe)
			}
		}
	}
	require.Positive(t, agreed)
}

// A slot goes to another master of a cluster. Its copies are made again from there.
func TestMirrorOfASlotThatMoves(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t, 3, 0)
	o := patient(redisfilter.Options{StartEmpty: true, Partitions: 12})
	set := process(t, cluster.Addrs(), "s", 3000, 0.0001, o)
	r := mirrorOf(t, set, nil)
	other := process(t, cluster.Addrs(), "s", 3000, 0.0001, o)
	part, slot := mirror.Table(r).Parts[4], mirror.Table(r).Slot(4)
	shard := part.Prefix + "0"
	from := cluster.MasterOf(ctx, shard)
	to := cluster.Servers[(slices.Index(cluster.Servers, from)+1)%3]

	added := 0
	add := func(n int) {
		for range n {
			until(t, func() bool { return other.Add(ctx, keyOf(added)) == nil }, "not added")
			added++
		}
	}
	check := func() {
		begin := time.Now()
		until(t, func() bool { return time.Since(begin) > time.Second }, "the lease is not over")
		for i := range added {
			maybe, _ := r.Contains(ctx, keyOf(i))
			require.True(t, maybe, "key %d", i)
		}
	}
	do := func(s *redistest.Server, args ...any) { require.NoError(t, s.Client().Do(ctx, args...).Err()) }
	id := func(s *redistest.Server) string { return s.Client().Do(ctx, "CLUSTER", "MYID").Val().(string) }
	add(100)
	check()
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	host, port, err := net.SplitHostPort(to.Addr)
	require.NoError(t, err)
	do(from, "MIGRATE", host, port, shard, 0, 5000)
	for _, s := range []*redistest.Server{to, from, cluster.Servers[0], cluster.Servers[1], cluster.Servers[2]} {
		do(s, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	}
	add(100)
	check()
	until(t, func() bool {
		now := mirror.Table(r).Parts[4]
		return now != nil && now.Identity != part.Identity
	}, "its owner did not change")
	add(100)
	check()
	for i := -1; ; i-- {
		h := set.Hash(keyOf(i))
		if number, _ := blocked.Locate(h).Split(12); number == 4 {
			local(t, r, keyOf(i), false)
			break
		}
	}
}

// The copies of a master that did not answer a poll are kept, good for "maybe" only.
func TestMirrorOfAMasterThatDidNotAnswer(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	ctx := context.Background()
	o := patient(redisfilter.Options{StartEmpty: true})
	s := process(t, []string{redistest.Start(t).Addr}, "s", 30_000, 0.0001, o)
	r := mirrorOf(t, s, nil)
	require.NoError(t, r.Add(ctx, keyOf(1)))
	local(t, r, keyOf(1), true)
	local(t, r, keyOf(2), false)
	before := mirror.Table(r)
	doubted := mirror.Tabulate(ctx, r, &nodes.Map{})
	require.Equal(t, before.Parts, doubted.Parts)
	require.Equal(t, layout.Present, doubted.Ask(s.Hash(keyOf(1))))
	require.Equal(t, layout.Lost, doubted.Ask(s.Hash(keyOf(2))))
}

func TestAMirrorDoesNotCopyTheShardOfAnotherKey(t *testing.T) {
	redistest.RequireReal(t)
	t.Parallel()
	server := redistest.Start(t)
	o := patient(redisfilter.Options{Partitions: 4, StartEmpty: true})
	s := process(t, []string{server.Addr}, "users", 400, 0.01, o)
	r := mirrorOf(t, s, nil)
	part := func(i int) string { return mirror.Table(r).Parts[i].Prefix + "0" }
	require.NoError(t, server.Client().Copy(t.Context(), part(0), part(1), 0, true).Err())
	until(t, func() bool { return r.Stats().Lost == 1 }, "the mirror has no copy of the shard")
}
