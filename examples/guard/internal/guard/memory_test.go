package guard

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/inprocess"
)

// mostCopies of a key are what a cuckoo filter holds.
const mostCopies = 8

var errAway = errors.New("redis is away")

// memory is every filter of the service in a map: a multiset with false positives
// where a test wants them.
type memory struct {
	mu      sync.Mutex
	copies  map[string]int
	falsely map[string]bool
	away    bool
	lost    bool // it was not loaded yet
	onAdd   func(key string)
}

func newMemory() *memory {
	return &memory{copies: make(map[string]int), falsely: make(map[string]bool)}
}

// do runs f unless the filter is away.
func (m *memory) do(f func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errAway
	}
	f()
	return nil
}

func (m *memory) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *memory) Add(_ context.Context, key []byte) error {
	if m.onAdd != nil {
		m.onAdd(string(key))
	}
	full := false
	err := m.do(func() {
		if full = m.copies[string(key)] == mostCopies; !full {
			m.copies[string(key)]++
		}
	})
	if full {
		return redisfilter.ErrTooManyCopies
	}
	return err
}

func (m *memory) Contains(_ context.Context, key []byte) (maybe bool, err error) {
	err = m.do(func() { maybe = m.copies[string(key)] > 0 || m.falsely[string(key)] })
	return maybe || err != nil, err
}

func (m *memory) Remove(_ context.Context, key []byte) (removed bool, err error) {
	err = m.do(func() {
		if removed = m.copies[string(key)] > 0; removed {
			m.copies[string(key)]--
		}
	})
	return removed, err
}

func (m *memory) Metrics() redisfilter.Metrics { return redisfilter.Metrics{Loaded: !m.lost} }

// full is a filter that has no room.
type full struct{ *memory }

func (full) Add(context.Context, []byte) error { return redisfilter.ErrFull }

func (full) Metrics() redisfilter.Metrics { return redisfilter.Metrics{Loaded: true, Full: true} }

func (m *memory) Ready(context.Context) error { return m.do(func() {}) }

// service is a guard whose filters are in memory.
type service struct {
	*Guard
	users, names, banned *memory
	redis                *inprocess.Server
	cache                *failingHook
}

// A failingHook refuses commands while it is on, as a server without memory does.
type failingHook struct{ on atomic.Bool }

func (h *failingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *failingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.on.Load() {
			return errors.New("OOM command not allowed")
		}
		return next(ctx, cmd)
	}
}

func (h *failingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// start returns a service with the users 1 to 100.
func start(t *testing.T, change func(*Config, *Cache)) *service {
	t.Helper()
	config := Config{Conns: 4, Queue: 100, Timeout: time.Hour, FilterTimeout: time.Hour}
	cached := Cache{Prefix: "t:", TTL: time.Hour, NullTTL: time.Hour, Timeout: time.Hour}
	if change != nil {
		change(&config, &cached)
	}
	store, err := OpenSQLite(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Seed(t.Context(), 100))
	server, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	failing := &failingHook{}
	client.AddHook(failing)
	cached.Redis = client
	t.Cleanup(func() { _ = client.Close() })
	s := &service{users: newMemory(), names: newMemory(), banned: newMemory(), redis: server,
		cache: failing}
	fill := func(m *memory, source func(context.Context, time.Time, func(...[]byte) error) error) {
		require.NoError(t, source(t.Context(), time.Time{}, func(keys ...[]byte) error {
			for _, key := range keys {
				m.copies[string(key)]++
			}
			return nil
		}))
	}
	fill(s.users, store.IDs)
	fill(s.names, store.Names)
	s.Guard = New(Parts{
		Store: store, Cache: &cached, Counters: NewCounters(), Logger: slog.New(slog.DiscardHandler),
		Filters: Filters{
			Users: s.users, Names: s.names, Banned: s.banned,
		},
	}, config)
	return s
}

// await waits until condition returns true, for as long as go test lets it.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	for !condition() {
		time.Sleep(time.Millisecond)
	}
}

// asked returns what the cache and the database are asked while f runs.
func (s *service) asked(f func()) (cached, queries uint64) {
	before := s.Counters.Layers()
	f()
	after := s.Counters.Layers()
	return after.Cache - before.Cache, after.Queries - before.Queries
}
