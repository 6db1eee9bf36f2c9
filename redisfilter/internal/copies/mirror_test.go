package copies

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// quick are options for tests that wait for what a mirror does.
var quick = Options{Lease: 200 * time.Millisecond, Refresh: time.Millisecond, Poll: time.Millisecond}

var tracks = regexp.MustCompile(` flags=\w*t\w* `)

func splitLines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }

func flagOf(line string) bool { return tracks.MatchString(line) }

// freshBytes waits until a copy is fresh and is as expected.
func freshBytes(t testing.TB, e *Entry, want string) {
	t.Helper()
	eventually(t, func() bool {
		v, fresh := e.Load()
		return fresh && string(bytesOf(v)) == want
	}, "no fresh %q", want)
}

// lost waits until a copy is known to be lost.
func lost(t testing.TB, m *Server, n int) {
	t.Helper()
	eventually(t, func() bool { return m.Stats().Lost == n }, "%d are not lost", n)
}

func TestWhatBecomesOfAString(t *testing.T) {
	redistest.RequireReal(t)
	ctx := context.Background()
	c := redistest.Start(t).Client()
	m := New(c.Options(), quick)
	defer m.Close()
	e := want(m, "k", 3)
	require.Same(t, e, want(m, "k", 3))
	lost(t, m, 1)

	for name, gone := range map[string]func(){
		"deleted":        func() { c.Del(ctx, "k") },
		"unlinked":       func() { c.Unlink(ctx, "k") },
		"expired":        func() { c.PExpire(ctx, "k", 5*time.Millisecond) },
		"renamed":        func() { c.Rename(ctx, "k", "other") },
		"flushed":        func() { c.FlushAll(ctx) },
		"flushed, async": func() { c.FlushDBAsync(ctx) },
		"shorter":        func() { c.Set(ctx, "k", "ab", 0) },
		"longer":         func() { c.Append(ctx, "k", "d") },
		"a list":         func() { c.Del(ctx, "k"); c.LPush(ctx, "k", "abc") },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.Set(ctx, "k", "abc", 0).Err())
			freshBytes(t, e, "abc")
			gone()
			lost(t, m, 1)
			v, fresh := e.Load()
			require.False(t, fresh)
			require.Zero(t, v.Len())
			require.NoError(t, c.Set(ctx, "k", "\x00\x01\x02", 0).Err())
			freshBytes(t, e, "\x00\x01\x02") // and none of the bits it had
		})
	}
}

func TestEvictedStringsAreLost(t *testing.T) {
	redistest.RequireReal(t)
	ctx := context.Background()
	c := redistest.Start(t, "--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru").Client()
	m, entries := blank(t, c, c.Options(), 200, 4048, quick)
	eventually(t, func() bool { return m.Stats().Clean == len(entries) }, "not all are clean")
	filler := strings.Repeat("x", 100_000)
	for i := 0; c.Exists(ctx, entries[0].Key()).Val() == 1; i++ {
		require.Less(t, i, 1000)
		require.NoError(t, c.Set(ctx, "filler"+strings.Repeat("x", i), filler, 0).Err())
	}
	eventually(t, func() bool { _, fresh := entries[0].Load(); return !fresh }, "it was evicted")
	eventually(t, func() bool {
		stats := m.Stats()
		return stats.Lost > 0 && stats.Lost+stats.Clean == len(entries)
	}, "what was evicted is not known to be lost")
}

func TestRestartedServer(t *testing.T) {
	redistest.RequireReal(t)
	ctx := context.Background()
	s := redistest.Start(t)
	m, entries := blank(t, s.Client(), s.Client().Options(), 10, 8, quick)
	for _, e := range entries {
		freshBytes(t, e, strings.Repeat("\x00", 8))
	}
	s.Kill()
	eventually(t, func() bool { return !m.Stats().Leased && m.Stats().Err != nil }, "the server is dead")
	require.Equal(t, len(entries), m.Stats().Dirty)
	s.Restart()
	lost(t, m, len(entries))
	require.NoError(t, m.Stats().Err)
	require.NoError(t, s.Client().Set(ctx, entries[3].Key(), "replaced", 0).Err())
	freshBytes(t, entries[3], "replaced")
}

func TestOwnBitsOnAServer(t *testing.T) {
	redistest.RequireReal(t)
	ctx := context.Background()
	c := redistest.Start(t).Client()
	m, entries := blank(t, c, c.Options(), 3, 64, quick)
	eventually(t, func() bool { return m.Stats().Clean == len(entries) }, "not all are clean")
	for bit := range uint32(8 * 64) {
		e := entries[bit%3]
		require.NoError(t, c.SetBit(ctx, e.Key(), int64(bit), 1).Err())
		e.Or(bit)
		for _, e := range entries {
			v, _ := e.Load()
			for before := range bit + 1 {
				require.True(t, entries[before%3] != e || v.Bit(before), "bit %d of %s", before, e.Key())
			}
		}
	}
	for _, e := range entries {
		freshBytes(t, e, c.Get(ctx, e.Key()).Val())
	}
}

func TestForgottenStringsAreNotFetched(t *testing.T) {
	redistest.RequireReal(t)
	ctx := context.Background()
	c := redistest.Start(t).Client()
	m, entries := blank(t, c, c.Options(), 2, 4, quick)
	eventually(t, func() bool { return m.Stats().Clean == 2 }, "not all are clean")
	m.Forget(entries[0])
	require.NoError(t, c.MSet(ctx, entries[0].Key(), "abcd", entries[1].Key(), "efgh").Err())
	freshBytes(t, entries[1], "efgh")
	v, fresh := entries[0].Load()
	require.False(t, fresh)
	require.Equal(t, "\x00\x00\x00\x00", string(bytesOf(v)))
	require.Equal(t, 1, m.Stats().Clean)
	freshBytes(t, want(m, entries[0].Key(), 4), "abcd")
}

func TestDatabaseAndPassword(t *testing.T) {
	redistest.RequireReal(t)
	ctx := context.Background()
	s := redistest.Start(t)
	require.NoError(t, s.Client().ConfigSet(ctx, "requirepass", "secret").Err())
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Password: "secret", DB: 3, Protocol: 2, PoolSize: 7})
	defer c.Close()
	require.NoError(t, c.Set(ctx, "k", "abc", 0).Err())
	m := New(c.Options(), quick)
	defer m.Close()
	freshBytes(t, want(m, "k", 3), "abc")

	wrong := New(&redis.Options{Addr: s.Addr, Password: "guess"}, quick)
	defer wrong.Close()
	eventually(t, func() bool { return wrong.Stats().Err != nil }, "the password is wrong")
	require.False(t, wrong.Stats().Leased)
}

func TestServerWithoutTracking(t *testing.T) {
	redistest.RequireReal(t)
	for _, command := range []string{"HELLO", "CLIENT"} {
		s := redistest.Start(t, "--rename-command", command, `""`)
		m := New(s.Client().Options(), quick)
		defer m.Close()
		e := want(m, "k", 3)
		require.NoError(t, s.Client().Set(context.Background(), "k", "abc", 0).Err())
		eventually(t, func() bool { return m.Stats().Err != nil }, "no error")
		require.ErrorContains(t, m.Stats().Err, command)
		_, fresh := e.Load()
		require.False(t, fresh)
	}
}

func TestOnConnectMayRefuse(t *testing.T) {
	redistest.RequireReal(t)
	s := redistest.Start(t)
	refusals := 0
	o := quick
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if refusals < 2 {
			refusals++
			return context.DeadlineExceeded
		}
		return conn.Set(ctx, "k", "abc", 0).Err()
	}
	m := New(s.Client().Options(), o)
	defer m.Close()
	freshBytes(t, want(m, "k", 3), "abc")
	require.Equal(t, 2, refusals)
	require.EqualValues(t, 1, m.Stats().Connects)
}

func TestCloseWhileTheServerIsStopped(t *testing.T) {
	redistest.RequireReal(t)
	s := redistest.Start(t)
	m, entries := blank(t, s.Client(), s.Client().Options(), 1, 8, quick)
	freshBytes(t, entries[0], strings.Repeat("\x00", 8))
	s.Stop()
	defer s.Continue()
	eventually(t, func() bool { return !m.Stats().Leased }, "the lease does not end")
	require.NoError(t, m.Close()) // does not wait for a read, which would not end before the test does
	_, fresh := entries[0].Load()
	require.False(t, fresh)
}
