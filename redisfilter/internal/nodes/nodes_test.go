package nodes

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

func TestSlotIsThatOfTheSpecification(t *testing.T) {
	for key, want := range map[string]int{
		"123456789": 0x31c3 % Slots, "foo": 12182, "{foo}bar": 12182, "a{foo}{bar}": 12182, "": 0,
	} {
		require.Equal(t, want, Slot(key), key)
	}
	require.NotEqual(t, Slot("{}a"), Slot("{}b"), "an empty tag is none")
	require.Equal(t, Slot("{foo"), Slot("{foo"), "nor is one without an end")
}

func TestSlotIsTheServers(t *testing.T) {
	redistest.RequireReal(t)
	s := redistest.Start(t, "--cluster-enabled", "yes")
	ctx := t.Context()
	property.Check(t, func(rt *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab{}/é\x00 ")))
		key := rapid.OneOf(text, rapid.String()).Draw(rt, "key")
		want, err := s.Client().ClusterKeySlot(ctx, key).Result()
		require.NoError(rt, err)
		require.Equal(rt, int(want), Slot(key))
	})
}

func TestIdentity(t *testing.T) {
	const info = "# Server\r\nrun_id:abc\r\n# Replication\r\nrole:master\r\nmaster_replid:def\r\nmaster_replid2:000\r\n"
	require.Equal(t, "abc/def", Identity(info))
	require.Equal(t, "abc/def", Identity(strings.ReplaceAll(info, "\r", "")))
	require.Empty(t, Identity(""))
	require.Empty(t, Identity(strings.Replace(info, "master\r", "slave\r", 1)))
	for _, field := range []string{"run_id", "role", "master_replid:"} {
		require.Empty(t, Identity(strings.Replace(info, field, "x", 1)), field)
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add("run_id:abc\r\nrole:master\r\nmaster_replid:def\r\nuptime_in_seconds:12\r\n")
	f.Add("uptime_in_seconds:-1")
	f.Add("uptime_in_seconds:99999999999999999999")
	f.Fuzz(func(t *testing.T, info string) {
		require.GreaterOrEqual(t, uptime(info), time.Duration(0))
		if id := Identity(info); id != "" {
			require.Contains(t, info, "role:master")
			run, _, ok := strings.Cut(id, "/")
			require.True(t, ok && run != "" && !strings.HasSuffix(id, "\n"))
		}
	})
}

// watching returns a watch of a server and the client that it watches.
func watching(t *testing.T, s *redistest.Server) (*Watch, *redis.Client) {
	w := New()
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr, OnConnect: w.OnConnect, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
	})
	require.NoError(t, w.Start(t.Context(), c))
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, c.Close())
	})
	return w, c
}

// awaitOwner waits until the owner of a slot is confirmed.
func awaitOwner(t *testing.T, w *Watch, slot int) (identity string, confirmed time.Time, ok bool) {
	t.Helper()
	redistest.Await(t, "confirmed owner", func() bool {
		identity, confirmed, ok = w.Map().Owner(slot)
		return ok && w.Valid(confirmed)
	})
	return identity, confirmed, ok
}

func TestARestartedServerIsNotTheOneThatWasConfirmed(t *testing.T) {
	redistest.RequireReal(t)
	ctx := t.Context()
	s := redistest.Start(t)
	w, c := watching(t, s)
	before, _, _ := awaitOwner(t, w, 7)
	s.Restart()
	for c.Ping(ctx).Err() != nil { // connections to the process that is gone
	}
	_, confirmed, ok := w.Map().Owner(7)
	require.False(t, ok && w.Valid(confirmed) && w.Map().knows(before), "a new connection has told")
	after, _, _ := awaitOwner(t, w, 7)
	require.NotEqual(t, before, after)
}

func TestAReplicaOwnsNothing(t *testing.T) {
	redistest.RequireReal(t)
	ctx := t.Context()
	replica := redistest.StartReplica(t, redistest.Start(t))
	w, _ := watching(t, replica)
	_, _, ok := w.Map().Owner(0)
	require.False(t, ok)
	replica.Promote(ctx)
	require.NoError(t, w.Poll(ctx))
	_, _, ok = w.Map().Owner(0)
	require.True(t, ok)
}

// Where the master was, there may be its replica, before it is promoted.
func TestAReplicaIsNotTheMasterThatWasConfirmed(t *testing.T) {
	redistest.RequireReal(t)
	ctx := t.Context()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	var addr atomic.Pointer[string]
	addr.Store(&master.Addr)
	w := New()
	c := redis.NewClient(&redis.Options{
		OnConnect: w.OnConnect, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, *addr.Load())
		},
	})
	require.NoError(t, w.Start(ctx, c))
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, c.Close())
	})
	awaitOwner(t, w, 0)
	addr.Store(&replica.Addr)
	master.Kill()
	for c.Ping(ctx).Err() != nil { // connections to the process that is gone
	}
	_, confirmed, ok := w.Map().Owner(0)
	require.False(t, ok && w.Valid(confirmed))
}

// A master that a partition cut off from its replicas may have a successor.
func TestAMasterThatMayNotWriteIsAway(t *testing.T) {
	redistest.RequireReal(t)
	ctx := t.Context()
	s := redistest.Start(t)
	replica := redistest.StartReplica(t, s)
	for option, value := range map[string]string{"min-replicas-to-write": "1", "min-replicas-max-lag": "1"} {
		require.NoError(t, s.Client().ConfigSet(ctx, option, value).Err())
	}
	writes := func(want bool) {
		redistest.Await(t, "writes or none", func() bool {
			err := s.Client().Set(ctx, "k", 1, 0).Err()
			return want == (err == nil) && (want || redis.HasErrorPrefix(err, "NOREPLICAS"))
		})
	}
	writes(true)
	w, _ := watching(t, s)
	replica.Stop()
	defer replica.Continue()
	writes(false)
	require.ErrorContains(t, w.Poll(ctx), "NOREPLICAS")
	require.ErrorContains(t, w.Away(0), "NOREPLICAS")
	replica.Continue()
	redistest.Await(t, "master with a replica", func() bool { return w.Poll(ctx) == nil && w.Away(0) == nil })
}

// A doubt that came later is not forgotten for one that took longer to be noted.
func TestDoubtsDoNotGoBack(t *testing.T) {
	w := New()
	later := time.Now()
	w.doubtFrom(later)
	w.doubtFrom(later.Add(-time.Second))
	require.False(t, w.Valid(later.Add(-time.Millisecond)))
	require.True(t, w.Valid(later.Add(time.Nanosecond)))
}

func TestConfirmationsEnd(t *testing.T) {
	w := New()
	require.False(t, w.Valid(time.Time{}))
	require.False(t, w.Valid(time.Now().Add(-Lease)))
	require.True(t, w.Valid(time.Now()))
	require.False(t, w.Valid(time.Now().Round(0).Add(-Lease)), "by the wall clock too")
}

type refresher struct{ polls atomic.Int64 }

func (r *refresher) Refresh(context.Context) { r.polls.Add(1) }

func TestPollWaitsForOneThatBeganLater(t *testing.T) {
	ctx := t.Context()
	w, _ := watching(t, redistest.Start(t))
	r := &refresher{}
	w.Add(r)
	for i := range int64(20) {
		before := r.polls.Load()
		require.NoError(t, w.Poll(ctx))
		require.Greater(t, r.polls.Load(), before, strconv.FormatInt(i, 10))
	}
	w.Remove(r)
	require.NoError(t, w.Poll(ctx))
	before := r.polls.Load()
	require.NoError(t, w.Poll(ctx))
	require.Equal(t, before, r.polls.Load())
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, w.Poll(canceled), context.Canceled)
	w.Stop()
	require.ErrorIs(t, w.Poll(ctx), redis.ErrClosed)
	w.Stop() // twice is once
}

func TestTheMapOfACluster(t *testing.T) {
	redistest.RequireReal(t)
	ctx := t.Context()
	cluster := redistest.StartCluster(t, 3, 0)
	w := New()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), OnConnect: w.OnConnect})
	defer c.Close()
	require.NoError(t, w.Start(ctx, c))
	defer w.Stop()
	var m *Map
	var ids []string
	redistest.Await(t, "answers of all masters", func() bool {
		var complete bool
		m = w.Map()
		ids, complete = m.Identities()
		return complete
	})
	require.Len(t, ids, 3)
	for i := range 50 {
		key := fmt.Sprintf("{%d}", i)
		owner := cluster.MasterOf(ctx, key)
		want := owner.Info(ctx, "server")["run_id"] + "/" + owner.Info(ctx, "replication")["master_replid"]
		got, _, ok := m.Owner(Slot(key))
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	require.True(t, m.Since(time.Now().Add(-time.Millisecond), nil))
	require.False(t, m.Since(time.Now().Add(-time.Hour), ids))
}

func TestAMasterThatHangsIsTheOnlyOneWithoutIdentity(t *testing.T) {
	redistest.RequireReal(t)
	ctx := context.Background()
	cluster := redistest.StartCluster(t, 3, 0)
	w := New()
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), OnConnect: w.OnConnect, ContextTimeoutEnabled: true, MaxRetries: -1,
	})
	defer c.Close()
	require.NoError(t, w.Start(ctx, c))
	defer w.Stop()
	hangs := cluster.MasterOf(ctx, "a")
	hangs.Stop()
	defer hangs.Continue()
	redistest.Await(t, "answers of the two others alone", func() bool { // a slow one may miss a poll
		m, known := w.Map(), 0
		for slot := range Slots {
			if _, _, ok := m.Owner(slot); ok {
				known++
			}
		}
		_, _, ok := m.Owner(Slot("a"))
		return !ok && math.Abs(float64(Slots*2/3-known)) <= 2
	})
	hangs.Continue()
	redistest.Await(t, "answers of all masters", func() bool {
		_, complete := w.Map().Identities()
		return complete
	})
}
