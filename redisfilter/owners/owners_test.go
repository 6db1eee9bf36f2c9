package owners

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// generousTimeout is that of operations on a machine that has other work.
const generousTimeout = time.Minute

// A setsTest makes the sets of programs that share a server.
type setsTest struct {
	addrs  []string
	keys   int
	rate   float64
	period time.Duration
	keep   int
	public bool
	clock  *manualClock // nil: the server's
}

// open returns the windows of another program, whose own clock is wrong by skew.
func (wt setsTest) open(t testing.TB, skew time.Duration) *Sets {
	t.Helper()
	c := redistest.Opened(t, redisfilter.Open, redisfilter.ErrUnavailable, &redis.UniversalOptions{Addrs: wt.addrs})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	clock := clockOf(conn.Of(c), layout.ConfigKey("feed"))
	clock.Now = func() time.Time { return time.Now().Add(skew) }
	if wt.clock != nil {
		clock.Ask = wt.clock.ask
		clock.Now = func() time.Time { return wt.clock.now().Add(skew) }
	}
	w, err := open(t.Context(), conn.Of(c), "feed", wt.keys, wt.rate, &Options{
		Period: wt.period, Keep: wt.keep, PublicHash: wt.public,
		Timeout: generousTimeout, Logger: slog.New(slog.DiscardHandler),
	}, clock)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// A manualClock stands still until it is told to go on.
type manualClock struct {
	offset atomic.Int64
	away   atomic.Bool
}

var errAway = errors.New("the clock is away")

func (m *manualClock) ask(context.Context) (time.Time, error) {
	if m.away.Load() {
		return time.Time{}, errAway
	}
	return m.now(), nil
}

func (m *manualClock) now() time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(m.offset.Load()))
}

func (m *manualClock) advance(d time.Duration) { m.offset.Add(int64(d)) }

func numbered(what string, n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%s-%d", what, i)
	}
	return keys
}

func count(flags []bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// Two windows of an owner that share a hint of how many layers they have, of which one has more.
func TestWindowsThatShareAHint(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	clock := &manualClock{}
	w := setsTest{
		addrs: []string{s.Addr}, keys: 20, rate: 0.01, clock: clock, period: time.Hour, keep: 3,
	}.open(t, 0)
	v, err := w.now()
	require.NoError(t, err)
	last := w.calendar.Number(clock.now()) + 1
	owner := ""
	for i := 0; owner == ""; i++ {
		name := fmt.Sprint("owner", i)
		hints := map[*atomic.Uint32]bool{}
		for _, seat := range v.windows.seats(name, v.cfg.Generation, last-1, last, []uint64{0}) {
			hints[seat.Known] = true
		}
		if len(hints) == 1 {
			owner = name
		}
	}
	f := w.Of(owner)
	require.NoError(t, f.MAdd(t.Context(), numbered("item", 100)))
	info, err := f.Info(t.Context())
	require.NoError(t, err)
	require.Greater(t, info.Layers, 1)
	clock.advance(time.Hour)
	for i := range 3 {
		fresh, err := f.MAddNew(t.Context(), numbered("item", 101+i))
		require.NoError(t, err)
		require.Zero(t, count(fresh[:100+i]))
	}
	maybe, err := f.MContains(t.Context(), numbered("item", 103))
	require.NoError(t, err)
	require.Equal(t, 103, count(maybe))
}

func TestWindowsHoldWhatWasAdded(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := setsTest{addrs: []string{s.Addr}, keys: 100, rate: 0.01}.open(t, 0).Of("ada")
	for i, key := range numbered("item", 500) { // so it grows
		maybe, err := f.Contains(t.Context(), key)
		require.NoError(t, err)
		fresh, err := f.AddNew(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, !maybe, fresh, "%d", i)
		maybe, err = f.Contains(t.Context(), key)
		require.NoError(t, err)
		require.True(t, maybe)
		fresh, err = f.AddNew(t.Context(), key)
		require.NoError(t, err)
		require.False(t, fresh)
	}
}

func TestWindowsTakeManyKeysAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	wt := setsTest{addrs: []string{s.Addr}, keys: 10, rate: 0.001, public: true}
	f, other := wt.open(t, 0).Of("ada"), wt.open(t, 0).Of("ada")
	keys := numbered("item", 400) // three layers
	require.NoError(t, f.MAdd(t.Context(), keys[:200]))
	fresh, err := other.MAddNew(t.Context(), append(keys, keys...))
	require.NoError(t, err)
	require.Zero(t, count(fresh[:200]))
	require.InDelta(t, 200, count(fresh[200:400]), 3)
	require.Zero(t, count(fresh[400:]), "the second time")
	maybe, err := f.MContains(t.Context(), keys)
	require.NoError(t, err)
	require.Equal(t, len(keys), count(maybe))
	maybe, err = f.MContains(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, maybe)
	require.NoError(t, f.MAdd(t.Context(), nil))
}

func TestWindowsEndAfterKeepPeriods(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const hour, keep = time.Hour, 4
	clock := &manualClock{}
	clock.advance(hour / 2)
	wt := setsTest{
		addrs: []string{s.Addr}, keys: 100, rate: 0.01, clock: clock, period: hour, keep: keep,
	}
	f, other := wt.open(t, 3*hour).Of("ada"), wt.open(t, -100*hour).Of("ada")
	again, once := []byte("added again"), []byte("added once")
	require.NoError(t, f.MAdd(t.Context(), [][]byte{again, once}))
	for range keep - 1 {
		clock.advance(hour)
		for _, key := range [][]byte{again, once} {
			fresh, err := other.AddNew(t.Context(), key)
			require.NoError(t, err)
			require.False(t, fresh)
		}
	}
	require.NoError(t, other.Add(t.Context(), again))
	clock.advance(hour)
	maybe, err := f.MContains(t.Context(), [][]byte{again, once})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, maybe, "AddNew of a key that is there does not prolong it, Add does")
}

func TestWindowsRefuseWhatCannotBe(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Opened(t, redisfilter.Open, redisfilter.ErrUnavailable,
		&redis.UniversalOptions{Addrs: []string{s.Addr}})
	defer c.Close()
	for _, bad := range []struct {
		n    int
		rate float64
		o    Options
	}{
		{0, 0.01, Options{}},
		{100_000, 0.01, Options{}}, // its first layer is more than one value
		{100, 0, Options{}},
		{100, 0.6, Options{}},
		{100, 1e-5, Options{Keep: 20}},
		{100, 0.01, Options{Period: time.Millisecond}},
		{100, 0.01, Options{Period: -time.Hour}},
		{100, 0.01, Options{Period: maxPeriod + 1}},
		{100, 0.01, Options{Period: maxPeriod, Keep: 30}}, // they would end after the last time there is
		{100, 0.01, Options{Keep: -1}},
		{100, 0.01, Options{Keep: 367}},
		{100, 0.01, Options{Growth: 1.5}},
		{100, 0.01, Options{Timeout: -1}},
	} {
		_, err := New(t.Context(), c, "feed", bad.n, bad.rate, &bad.o)
		require.ErrorContains(t, err, "redisfilter: ", "%+v", bad)
	}
	w, err := New(t.Context(), c, "feed", 10_000, 0.01, &Options{Timeout: generousTimeout})
	require.NoError(t, err)
	defer w.Close()
	_, err = New(t.Context(), c, "feed", 10_000, 0.01, &Options{Keep: 6, Timeout: generousTimeout})
	require.ErrorIs(t, err, redisfilter.ErrMismatch)
	for _, owner := range []string{"", strings.Repeat("x", maxOwner+1)} {
		maybe, err := w.Of(owner).Contains(t.Context(), []byte("k"))
		require.ErrorContains(t, err, "owner")
		require.True(t, maybe)
		fresh, err := w.Of(owner).AddNew(t.Context(), []byte("k"))
		require.ErrorContains(t, err, "owner")
		require.False(t, fresh)
		require.ErrorContains(t, w.Of(owner).Add(t.Context(), []byte("k")), "owner")
	}
}

func TestWindowsSayMaybeWithoutRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := setsTest{addrs: []string{s.Addr}, keys: 100, rate: 0.01}.open(t, 0).Of("ada")
	require.NoError(t, f.Add(t.Context(), []byte("k")))
	s.Kill()
	for range 3 {
		maybe, err := f.MContains(t.Context(), numbered("item", 5))
		require.ErrorIs(t, err, redisfilter.ErrUnavailable)
		require.Equal(t, 5, count(maybe))
		fresh, err := f.MAddNew(t.Context(), numbered("item", 5))
		require.ErrorIs(t, err, redisfilter.ErrUnavailable)
		require.Zero(t, count(fresh))
		require.ErrorIs(t, f.Add(t.Context(), []byte("k")), redisfilter.ErrUnavailable)
	}
}

func TestWindowsThatWereDroppedOrClosedSaySo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	wt := setsTest{addrs: []string{s.Addr}, keys: 100, rate: 0.01}
	w, other := wt.open(t, 0), wt.open(t, 0)
	require.NoError(t, w.Of("ada").Add(t.Context(), []byte("k")))
	require.NoError(t, w.Drop(t.Context()))
	require.NoError(t, other.stored.Conn.Watch.Poll(t.Context()))
	outage, cancel := context.WithCancel(t.Context())
	cancel()
	for _, w := range []*Sets{w, other} {
		w.refresh(outage)
		require.ErrorIs(t, w.Of("ada").Add(t.Context(), []byte("k")), redisfilter.ErrDropped)
		maybe, err := w.Of("ada").Contains(t.Context(), []byte("absent"))
		require.ErrorIs(t, err, redisfilter.ErrDropped)
		require.True(t, maybe)
	}
	w = wt.open(t, 0)
	maybe, err := w.Of("ada").Contains(t.Context(), []byte("k"))
	require.NoError(t, err)
	require.False(t, maybe, "what remains of former windows is not taken for theirs")
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Drop(t.Context()), redisfilter.ErrClosed)
	fresh, err := w.Of("ada").AddNew(t.Context(), []byte("k"))
	require.ErrorIs(t, err, redisfilter.ErrClosed)
	require.False(t, fresh)
}

// The configuration of a running program comes back after a flush, and is the same.
func TestWindowsOutliveAFlush(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	wt := setsTest{addrs: []string{s.Addr}, keys: 100, rate: 0.01}
	w := wt.open(t, 0)
	require.NoError(t, w.Of("ada").Add(t.Context(), []byte("before")))
	require.NoError(t, s.Client().FlushAll(t.Context()).Err())
	require.NoError(t, w.Of("ada").Add(t.Context(), []byte("after")))
	for s.Client().Exists(t.Context(), layout.ConfigKey("feed")).Val() == 0 {
		require.NoError(t, w.stored.Conn.Watch.Poll(t.Context()))
	}
	maybe, err := wt.open(t, 0).Of("ada").MContains(t.Context(), [][]byte{[]byte("before"), []byte("after")})
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, maybe)
}

func TestWindowsDoNotGuessTheTime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	clock := &manualClock{}
	w := setsTest{addrs: []string{s.Addr}, keys: 100, rate: 0.01, clock: clock}.open(t, 0)
	clock.away.Store(true)
	clock.advance(maxReading)
	require.NoError(t, w.Of("ada").Add(t.Context(), []byte("k")))
	clock.advance(time.Second)
	maybe, err := w.Of("ada").Contains(t.Context(), []byte("absent"))
	require.ErrorIs(t, err, errAway)
	require.ErrorIs(t, err, redisfilter.ErrUnavailable)
	require.True(t, maybe)
}

// What no load changes is named.
func TestMismatchesHaveNames(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Opened(t, redisfilter.Open, redisfilter.ErrUnavailable,
		&redis.UniversalOptions{Addrs: []string{s.Addr}})
	defer c.Close()
	sets, err := New(t.Context(), c, "w", 1000, 0.01, &Options{Timeout: generousTimeout})
	require.NoError(t, err)
	require.NoError(t, sets.Close())
	for name, o := range map[string]Options{
		"Period": {Period: time.Hour}, "Keep": {Keep: 2}, "the size, the rate or Growth": {Growth: 3},
	} {
		o.Timeout = generousTimeout
		_, err := New(t.Context(), c, "w", 1000, 0.01, &o)
		require.ErrorIs(t, err, redisfilter.ErrMismatch)
		require.ErrorContains(t, err, name+" differs")
	}
	_, err = redisfilter.New(t.Context(), c, "w", 1000, 0.01, &redisfilter.Options{Timeout: generousTimeout})
	require.ErrorContains(t, err, "kind of set differs")
}
