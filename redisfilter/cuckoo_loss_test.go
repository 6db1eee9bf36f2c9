package redisfilter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A part of a set that was lost says neither no nor yes for certain, and is not removed from; the
// set loads itself then.
func TestCuckooIsLoadedAfterALoss(t *testing.T) {
	t.Parallel()
	cuckooServers(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		table := newCuckooRows(cuckooKeys(0, 1000))
		var hold sync.Mutex // for the time in which no load shall end
		source := func(ctx context.Context, since time.Time, add func(keys ...[]byte) error) error {
			hold.Lock()
			defer hold.Unlock()
			return table.source(ctx, since, add)
		}
		hold.Lock()
		set := newCuckoo(t, addr, "loss", 2000, 1e-6,
			redisfilter.Options{Source: source, Partitions: 4, Grace: time.Millisecond})
		_, err := set.Contains(ctx, cuckooKey(1))
		require.ErrorIs(t, err, redisfilter.ErrIncomplete)
		_, err = set.Remove(ctx, cuckooKey(1))
		require.ErrorIs(t, err, redisfilter.ErrIncomplete)
		require.NoError(t, set.Add(ctx, cuckooKey(1)), "the load finds the row")
		hold.Unlock()
		ready(t, set)
		maybe, err := set.MContains(ctx, cuckooKeys(0, 1100))
		require.NoError(t, err)
		for i, got := range maybe {
			require.Equal(t, i < 1000, got)
		}

		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		for _, loss := range []func(shard string) error{
			func(shard string) error { return client.Del(ctx, shard).Err() },
			func(shard string) error { return client.Set(ctx, shard, "another program's", 0).Err() },
			func(shard string) error { client.Del(ctx, shard); return client.LPush(ctx, shard, "a list").Err() },
			func(shard string) error { return client.FlushAll(ctx).Err() },
		} {
			hold.Lock()
			var shards []string
			redistest.Await(t, "end of what the last load replaced", func() bool {
				shards = cuckooShards(t, addr, "loss")
				return len(shards) == 4
			})
			require.NoError(t, loss(shards[0]))
			lost := 0
			for i := range 1100 {
				maybe, err := set.Contains(ctx, cuckooKey(i))
				require.True(t, maybe || i >= 1000, "key %d, %v", i, err)
				if err != nil {
					require.True(t, maybe)
					lost++
				}
			}
			require.Greater(t, lost, 100)
			_, err := set.MRemove(ctx, cuckooKeys(1100, 1200))
			require.Error(t, err)
			_, err = set.Info(ctx)
			require.Error(t, err)
			hold.Unlock()
			denies(t, set, cuckooKeys(1000, 1100))
			maybe, err := set.MContains(ctx, cuckooKeys(0, 1000))
			require.NoError(t, err)
			require.NotContains(t, maybe, false)
		}
	})
}

// Programs insert and delete rows, and add and remove their keys, while the set is loaded again and
// again; no key whose row is there is ever denied.
func TestCuckooLoadsWhileKeysComeAndGo(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	const grace, programs, loads = 300 * time.Millisecond, 4, 3
	table := newCuckooRows(nil)
	sets := make([]*redisfilter.Cuckoo, programs)
	for i := range sets {
		sets[i] = newCuckoo(t, addr, "churn", 200_000, 0.002, redisfilter.Options{StartEmpty: true, Grace: grace})
	}
	var group sync.WaitGroup
	done := make(chan struct{})
	for i, set := range sets {
		group.Go(func() { churn(t, set, table, grace, rand.New(rand.NewPCG(1, uint64(i))), i, done) })
	}
	for load := range loads {
		if err := sets[load%programs].Load(t.Context(), table.source); err != nil {
			t.Error(err)
		}
	}
	close(done)
	group.Wait()
	maybe, err := sets[0].MContains(t.Context(), table.keys())
	require.NoError(t, err)
	require.NotContains(t, maybe, false)
}

// churn inserts and deletes rows of its own until it is done, and asks for them. What it adds and removes during a
// load fills the next generation until the load after it. So it adds no more than fit, and no key so often that its
// copies crowd out others. What took longer than grace allows has not happened to the row; a copy of the key may be
// left.
func churn(t *testing.T, set *redisfilter.Cuckoo, table *cuckooRows, grace time.Duration, random *rand.Rand,
	program int, done chan struct{}) {
	const keys, adds = 15_000, 2 // of each key
	ctx, own, added := t.Context(), map[string]bool{}, map[string]int{}
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		key := fmt.Appendf(nil, "%d/%d", program, random.IntN(keys))
		switch {
		case own[string(key)]:
			table.delete(key)
			delete(own, string(key))
			within, cancel := context.WithTimeout(ctx, grace)
			_, err := set.Remove(within, key)
			late := within.Err() != nil
			cancel()
			if err != nil && !late {
				t.Errorf("remove: %v", err)
				return
			}
		case added[string(key)] == adds:
			if _, err := set.Contains(ctx, key); err != nil {
				t.Errorf("ask: %v", err)
				return
			}
		default:
			begun := time.Now()
			if err := set.Add(ctx, key); err != nil {
				t.Errorf("add: %v", err)
				return
			}
			added[string(key)]++
			if table.commit(key, begun.Add(grace)) {
				own[string(key)] = true
			}
		}
		for key := range own { // some one
			if maybe, err := set.Contains(ctx, []byte(key)); !maybe {
				t.Errorf("after %d steps the set denies %s, %v", n, key, err)
				return
			}
			break
		}
	}
}

// What a load has read stays "maybe" until the next one, though it is removed meanwhile; what is added
// meanwhile is there.
func TestCuckooChangesDuringALoad(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	set := newCuckoo(t, redistest.Start(t).Addr, "during", 1000, 1e-6,
		redisfilter.Options{StartEmpty: true, Grace: time.Millisecond})
	require.NoError(t, set.MAdd(ctx, cuckooKeys(0, 100)))
	table := newCuckooRows(cuckooKeys(0, 100))
	require.NoError(t, set.Load(ctx, func(ctx context.Context, since time.Time, add func(...[]byte) error) error {
		require.NoError(t, table.source(ctx, since, add))
		removed, err := set.MRemove(ctx, cuckooKeys(0, 50))
		require.NoError(t, err)
		require.NotContains(t, removed, false)
		maybe, err := set.MContains(ctx, cuckooKeys(0, 50))
		require.NoError(t, err)
		require.NotContains(t, maybe, true)
		fresh, err := set.MAddNew(ctx, cuckooKeys(90, 110))
		require.NoError(t, err)
		for i := range fresh {
			require.Equal(t, i >= 10, fresh[i])
		}
		return nil
	}))
	maybe, err := set.MContains(ctx, cuckooKeys(0, 120))
	require.NoError(t, err)
	for i := range maybe {
		require.Equal(t, i < 110, maybe[i], i)
	}
	removed, err := set.MRemove(ctx, cuckooKeys(50, 110))
	require.NoError(t, err)
	require.NotContains(t, removed, false)
	require.NoError(t, set.Load(ctx, func(context.Context, time.Time, func(...[]byte) error) error { return nil }))
	info, err := set.Info(ctx)
	require.NoError(t, err)
	require.Zero(t, info.Keys)
}

// Keys that come and go while a load runs fill its generation, as they go from the one in use only. It
// is the load that fails then, not an add.
func TestCuckooLoadFailsBeforeAnAddDoes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	set := newCuckoo(t, redistest.Start(t).Addr, "spoilt", 100, 1e-6,
		redisfilter.Options{StartEmpty: true, Grace: time.Millisecond})
	key := []byte("stays")
	require.NoError(t, set.Add(ctx, key))
	err := set.Load(ctx, func(_ context.Context, _ time.Time, add func(...[]byte) error) error {
		for i := range 300 {
			require.NoError(t, set.Add(ctx, cuckooKey(i)))
			removed, err := set.Remove(ctx, cuckooKey(i))
			require.NoError(t, err)
			require.True(t, removed)
		}
		for range 20 { // more often than its buckets have slots
			require.NoError(t, set.Add(ctx, key))
			_, err := set.Remove(ctx, key)
			require.NoError(t, err)
		}
		return add(key)
	})
	require.ErrorIs(t, err, redisfilter.ErrIncomplete)
	maybe, err := set.MContains(ctx, append(cuckooKeys(0, 300), key))
	require.NoError(t, err)
	require.NotContains(t, maybe[:300], true)
	require.True(t, maybe[300])
	require.NoError(t, set.Load(ctx, newCuckooRows([][]byte{key}).source))
	maybe, err = set.MContains(ctx, [][]byte{key, cuckooKey(1)})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, maybe)
}

// A cutConn loses the answer to a command that the server has carried out.
type cutConn struct {
	net.Conn
	cut     *atomic.Int32 // answers that are to be lost
	pending atomic.Bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if text := strings.ToLower(string(b)); strings.Contains(text, "eval") && c.cut.Add(-1) >= 0 {
		c.pending.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b) // so the server is done
	if c.pending.Load() {
		c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// A call whose answer is lost is sent again, and carried out once.
func TestCuckooCallsAreMadeOnce(t *testing.T) {
	t.Parallel()
	cuckooServers(t, func(t *testing.T, addr string) {
		ctx, cut := t.Context(), &atomic.Int32{}
		c := cuckooClient(t, &redis.UniversalOptions{Addrs: []string{addr},
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				return &cutConn{Conn: conn, cut: cut}, err
			}})
		set := cuckooOf(t, c, "once", 1000, 1e-6, redisfilter.Options{StartEmpty: true})
		key := cuckooKey(1)
		require.NoError(t, set.Add(ctx, key))
		removed, err := set.Remove(ctx, key) // the server knows all scripts now
		require.NoError(t, err)
		require.True(t, removed)
		fresh, err := set.AddNew(ctx, key)
		require.NoError(t, err)
		require.True(t, fresh)
		for lost := range int32(3) {
			cut.Store(lost)
			require.NoError(t, set.Add(ctx, key))
			cut.Store(lost)
			removed, err := set.Remove(ctx, key)
			require.NoError(t, err)
			require.True(t, removed)
			maybe, err := set.Contains(ctx, key)
			require.NoError(t, err)
			require.True(t, maybe, "one copy was removed, one is left")
			cut.Store(lost)
			removed, err = set.Remove(ctx, key)
			require.NoError(t, err)
			require.True(t, removed)
			maybe, err = set.Contains(ctx, key)
			require.NoError(t, err)
			require.False(t, maybe, "nothing was added twice")
			cut.Store(lost)
			fresh, err := set.AddNew(ctx, key)
			require.NoError(t, err)
			require.True(t, fresh, "it was new, and still is to who asked")
		}
	})
}
