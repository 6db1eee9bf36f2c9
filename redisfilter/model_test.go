package redisfilter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A model is a set of two processes, the keys that were acknowledged, and a server that loses things.
type model struct {
	srv   *redistest.Server
	sets  []*Set
	added map[string]bool
	next  int
}

// ask requires that no process says no to a key that was acknowledged.
func (m *model) ask(t *rapid.T) {
	keys := [][]byte{}
	for k := range m.added {
		keys = append(keys, []byte(k))
	}
	for i, s := range m.sets {
		maybe, err := s.MContains(context.Background(), keys)
		for j, k := range keys {
			require.True(t, maybe[j], "process %d, %q: %v", i, k, err)
		}
	}
}

func (m *model) add(t *rapid.T) {
	ctx := context.Background()
	s := m.sets[rapid.IntRange(0, len(m.sets)-1).Draw(t, "process")]
	keys := make([][]byte, rapid.IntRange(0, 60).Draw(t, "keys"))
	for i := range keys {
		m.next++
		keys[i] = key(m.next)
	}
	var err error
	if rapid.Bool().Draw(t, "new") {
		_, err = s.MAddNew(ctx, keys)
	} else {
		err = s.MAdd(ctx, keys)
	}
	if err != nil {
		require.True(t, errors.Is(err, ErrIncomplete) || errors.Is(err, ErrUnavailable), "%v", err)
		return
	}
	for _, k := range keys {
		m.added[string(k)] = true
	}
}

// lose removes some values from Redis.
func (m *model) lose(t *rapid.T) {
	ctx, c := context.Background(), m.srv.Client()
	all := c.Keys(ctx, "sk:*").Val()
	if len(all) == 0 {
		return
	}
	switch k := rapid.SampledFrom(all).Draw(t, "key"); rapid.IntRange(0, 5).Draw(t, "loss") {
	case 0:
		require.NoError(t, c.FlushAll(ctx).Err())
	case 1:
		require.NoError(t, c.PExpire(ctx, k, time.Millisecond).Err())
	case 2:
		require.NoError(t, c.Del(ctx, layout.ConfigKey("users")).Err())
	default:
		require.NoError(t, c.Del(ctx, k).Err())
	}
}

func (m *model) refresh(t *rapid.T) {
	m.sets[rapid.IntRange(0, len(m.sets)-1).Draw(t, "process")].refresh(context.Background())
}

func TestNoAcknowledgedKeyIsDenied(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"fixed": {Partitions: 3}, "growing": {Growth: 3, Partitions: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t)
			property.Check(t, func(rt *rapid.T) {
				require.NoError(rt, srv.Client().FlushAll(t.Context()).Err())
				m := &model{srv: srv, added: map[string]bool{}}
				for range 2 {
					c := openClient(t, srv.Addr)
					defer c.Close()
					s := wholeSet(t, c, "users", 100, o)
					defer s.Close()
					m.sets = append(m.sets, s)
				}
				rt.Repeat(map[string]func(*rapid.T){
					"add": m.add, "more": m.add, "most": m.add, "lose": m.lose, "refresh": m.refresh, "": m.ask,
				})
			})
		})
	}
}

// After a load, a set that lost everything is exact: all keys of the source, and few others.
func TestALoadMakesExact(t *testing.T) {
	t.Parallel()
	for name, growth := range map[string]float64{"fixed": 0, "growing": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t)
			s := wholeSet(t, openClient(t, srv.Addr), "users", 2000, Options{Growth: growth})
			require.NoError(t, srv.Client().FlushAll(t.Context()).Err())
			_, err := s.Contains(t.Context(), key(1))
			require.ErrorIs(t, err, ErrIncomplete)
			require.NoError(t, s.Load(t.Context(), sourceOf(keysTo(2000)...)))
			holds(t, s, keysTo(2000)...)
			others := make([][]byte, 20_000)
			for i := range others {
				others[i] = fmt.Appendf(nil, "other %d", i)
			}
			wrong := 0
			for _, maybe := range contains(t, s, others...) {
				if maybe {
					wrong++
				}
			}
			require.Less(t, wrong, 200+6*15, "one per cent of 20,000, and six standard deviations")
		})
	}
}

// After five growths the rate of false positives is what was promised.
func TestTheRateHoldsAfterFiveGrowths(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	s := wholeSet(t, openClient(t, srv.Addr), "users", 100, Options{Growth: 3})
	all, layers := 0, 0
	for layers < 6 {
		batch := make([][]byte, 10)
		for i := range batch {
			batch[i] = key(all + i)
		}
		require.NoError(t, s.MAdd(t.Context(), batch))
		all += len(batch)
		info, err := s.Info(t.Context())
		require.NoError(t, err)
		layers = info.Layers
	}
	holds(t, s, keysTo(all)...)
	const asked = 50_000
	others := make([][]byte, asked)
	for i := range others {
		others[i] = fmt.Appendf(nil, "other %d", i)
	}
	wrong := 0
	for _, maybe := range contains(t, s, others...) {
		if maybe {
			wrong++
		}
	}
	t.Logf("%d keys: %d false positives of %d", all, wrong, asked)
	require.Less(t, wrong, asked/100+6*23, "one per cent, and six standard deviations")
}

// configsOf returns the configuration that each of some processes knows.
func configsOf(sets []*Set) (all []string) {
	for _, s := range sets {
		all = append(all, string(s.view.Load().cfg.Encoded))
	}
	return all
}

// Of all who add a key at the same time, one is told that it is new, also while a generation is loaded.
func TestAddNewHasOneWinner(t *testing.T) {
	t.Parallel()
	for name, growth := range map[string]float64{"fixed": 0, "growing": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t)
			sets := make([]*Set, 3)
			for i := range sets {
				sets[i] = wholeSet(t, openClient(t, srv.Addr), "users", 1_000_000, Options{Growth: growth})
			}
			loaded := make(chan error, 1)
			go func() { loaded <- sets[0].Load(t.Context(), sourceOf()) }()
			for i, loading := 0, true; loading || i < 20; i++ {
				var winners atomic.Int64
				var all sync.WaitGroup
				before := configsOf(sets)
				for g := range 32 {
					all.Go(func() {
						fresh, err := sets[g%3].AddNew(t.Context(), key(i))
						if fresh {
							winners.Add(1)
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				require.LessOrEqual(t, winners.Load(), int64(1))
				settled := slices.Equal(before, configsOf(sets)) && len(slices.Compact(before)) == 1
				if settled && !strings.Contains(before[0], `"retiring"`) {
					require.Equal(t, int64(1), winners.Load(), "round %d", i)
				}
				select {
				case err := <-loaded:
					require.NoError(t, err)
					loading = false
				default:
				}
			}
		})
	}
}

// Whatever is under the keys of a set, no process says no to its keys, and errors say what it is.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 8000)
	for i := range noise {
		noise[i] = byte(rand.Uint32()) &^ layout.MarkBit // no marks, without which no line is believed
	}
	spoils := map[string][]any{
		"list": {"rpush", "x"}, "hash": {"hset", "a", "b"}, "zset": {"zadd", 1, "a"}, "empty": {"set", ""},
		"short": {"set", "sift"}, "noise": {"set", noise}, "text": {"set", bytes.Repeat([]byte("A"), 100)},
		"next version": {"set", `{"version":2}`}, "null": {"set", "null"},
	}
	for name, growth := range map[string]float64{"fixed": 0, "growing": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			srv := startServer(t)
			c := openClient(t, srv.Addr)
			s := wholeSet(t, c, "users", 100, Options{Growth: growth})
			for i := range 250 {
				require.NoError(t, s.Add(ctx, key(i)))
			}
			for _, k := range srv.Client().Keys(ctx, "sk:*").Val() {
				dump := srv.Client().Dump(ctx, k).Val()
				for spoil, args := range spoils {
					spoiling := srv.Client().TxPipeline() // else a set that is open may put the key there in between
					spoiling.Del(ctx, k)
					spoiling.Do(ctx, append([]any{args[0], k}, args[1:]...)...)
					_, err := spoiling.Exec(ctx)
					require.NoError(t, err)
					s.refresh(ctx)
					maybe, err := s.MContains(ctx, keysTo(250))
					for i := range maybe {
						require.True(t, maybe[i], "%s under %s: %v", spoil, k, err)
					}
					if err != nil {
						known := errors.Is(err, ErrForeign) || errors.Is(err, ErrIncomplete)
						require.True(t, known, "%s: %v", spoil, err)
					}
					_, _ = s.Info(ctx)
					_, _ = s.AddNew(ctx, key(1))
					_, _ = New(ctx, c, "users", 100, 0.01, quiet(Options{Growth: growth, Timeout: time.Second}))
				}
				require.NoError(t, srv.Client().RestoreReplace(ctx, k, 0, dump).Err())
				s.refresh(ctx)
			}
		})
	}
}

// A server that does not answer costs a deadline at most, and nothing while it is known to be away.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	s := wholeSet(t, openClient(t, srv.Addr), "users", 100, Options{})
	absent := absentKey(t, s)
	srv.Stop()
	defer srv.Continue()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	maybe, err := s.Contains(ctx, absent)
	cancel()
	require.True(t, maybe)
	require.ErrorIs(t, err, ErrUnavailable)
	until(t, func() bool { return s.client.Watch.Away(0) != nil }, "the server is known to be away")
	maybe, err = s.Contains(t.Context(), absent) // or it would wait for patience
	require.True(t, maybe)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, s.Add(t.Context(), absent), ErrUnavailable)
	srv.Continue()
	until(t, func() bool {
		maybe, err := s.Contains(t.Context(), absent)
		return err == nil && !maybe
	}, "the set says no again")
}

func TestKeysOfAllKinds(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	s := wholeSet(t, openClient(t, srv.Addr), "a/b:ключ/日本", 100, Options{})
	large := bytes.Repeat([]byte("x"), 1<<20)
	require.NoError(t, s.MAdd(t.Context(), [][]byte{nil, {0}, large}))
	holds(t, s, nil, []byte{}, []byte{0}, large)
	require.NoError(t, s.MAdd(t.Context(), nil))
	require.Empty(t, contains(t, s))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	maybe, err := s.Contains(canceled, []byte("y"))
	require.True(t, maybe)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	maybe, err = s.Contains(t.Context(), []byte("y"))
	require.True(t, maybe)
	require.ErrorIs(t, err, ErrClosed)
}
