package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
)

// Each layer is asked only if those before it could not answer.
func TestLookupAsksNoMoreThanItMust(t *testing.T) {
	s := start(t, nil)
	s.users.falsely["500"] = true
	for _, step := range []struct {
		what            string
		id              int64
		err             error
		cached, queries uint64
	}{
		{"absent: the filter knows", 400, ErrNotFound, 0, 0},
		{"present: the database is asked", 7, nil, 1, 1},
		{"present again: the cache knows", 7, nil, 1, 0},
		{"a false positive: the database is asked", 500, ErrNotFound, 1, 1},
		{"a false positive again: the cache knows", 500, ErrNotFound, 1, 0},
	} {
		cached, queries := s.asked(func() {
			u, err := s.User(t.Context(), step.id)
			require.ErrorIs(t, err, step.err, step.what)
			if err == nil {
				require.Equal(t, User{ID: step.id, Name: fmt.Sprintf("user%d", step.id)}, u)
			}
		})
		require.Equal(t, step.cached, cached, step.what)
		require.Equal(t, step.queries, queries, step.what)
	}
	counted := s.Counters
	require.EqualValues(t, 4, counted.Users.Maybe.Load())
	require.EqualValues(t, 1, counted.Users.No.Load())
	require.EqualValues(t, 1, counted.Database.Empty.Load())
	require.EqualValues(t, 1, counted.Cache.Nulls.Load())
}

// Without the filter every absent key costs a query.
func TestSwitch(t *testing.T) {
	s := start(t, nil)
	require.True(t, s.Switch.On())
	s.Switch.Set(false)
	_, queries := s.asked(func() {
		for id := range int64(10) {
			_, err := s.User(t.Context(), 400+id)
			require.ErrorIs(t, err, ErrNotFound)
		}
		_, err := s.SignUp(t.Context(), "ann")
		require.NoError(t, err)
	})
	require.EqualValues(t, 11, queries)
	require.Zero(t, s.Counters.Users.No.Load()+s.Counters.Users.Maybe.Load())
	s.Switch.Set(true)
	require.NoError(t, s.Cache.Redis.FlushAll(t.Context()).Err())
	taken, err := s.Taken(t.Context(), "ann")
	require.NoError(t, err)
	require.True(t, taken, "the filter was told while it was off")
}

func TestFalsePositiveAsksAgainWhenItsNullEnds(t *testing.T) {
	s := start(t, func(_ *Config, c *Cache) { c.NullTTL = 5 * time.Millisecond })
	s.users.falsely["500"] = true
	await(t, func() bool {
		_, err := s.User(t.Context(), 500)
		require.ErrorIs(t, err, ErrNotFound)
		return s.Counters.Database.Queries.Load() >= 2
	})
}

func TestFilterAway(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			s := start(t, func(c *Config, _ *Cache) { c.FailClosed = closed })
			for _, m := range []*memory{s.users, s.names, s.banned} {
				m.away = true
			}
			_, present := s.User(t.Context(), 7)
			_, absent := s.User(t.Context(), 400)
			taken, named := s.Taken(t.Context(), "user7")
			if closed {
				for _, err := range []error{present, absent, named} {
					require.ErrorIs(t, err, ErrUnsure)
					require.ErrorIs(t, err, errAway)
				}
				require.ErrorIs(t, s.Ready(t.Context()), errAway)
				require.Zero(t, s.Counters.Database.Queries.Load())
				return
			}
			require.NoError(t, present)
			require.ErrorIs(t, absent, ErrNotFound, "the database knows")
			require.NoError(t, named)
			require.True(t, taken)
			require.NoError(t, s.Ready(t.Context()))
			c := s.Counters
			require.EqualValues(t, 5, c.Users.Errors.Load()+c.Names.Errors.Load()+c.Banned.Errors.Load())
		})
	}
}

func TestCacheAway(t *testing.T) {
	s := start(t, nil)
	s.redis.Close()
	for range 2 {
		_, queries := s.asked(func() {
			u, err := s.User(t.Context(), 7)
			require.NoError(t, err)
			require.Equal(t, "user7", u.Name)
		})
		require.EqualValues(t, 1, queries)
	}
	require.NotZero(t, s.Counters.Cache.Errors.Load())
}

func TestDatabaseAway(t *testing.T) {
	s := start(t, nil)
	require.NoError(t, s.Store.Close())
	_, err := s.User(t.Context(), 7)
	require.ErrorIs(t, err, ErrDatabase)
	_, err = s.SignUp(t.Context(), "ann")
	require.ErrorIs(t, err, ErrDatabase)
	require.ErrorIs(t, s.Ban(t.Context(), 7), ErrDatabase)
	require.ErrorIs(t, s.Unban(t.Context(), 7), ErrDatabase)
	require.Error(t, s.Ready(t.Context()))
	_, err = s.User(t.Context(), 400)
	require.ErrorIs(t, err, ErrNotFound, "the filter needs no database")
	require.EqualValues(t, 4, s.Counters.Database.Errors.Load())
}

// Those who find the queue full are refused, and the database is not asked.
func TestOverload(t *testing.T) {
	s := start(t, func(c *Config, _ *Cache) { c.Conns, c.Queue = 1, 0 })
	errs := make([]error, 64)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { _, errs[i] = s.User(t.Context(), int64(1+i)) })
	}
	group.Wait()
	refused := uint64(0)
	for _, err := range errs {
		if err != nil {
			require.ErrorIs(t, err, ErrOverload)
			refused++
		}
	}
	counted := &s.Counters.Database
	require.Equal(t, refused, counted.Shed.Load())
	require.Equal(t, uint64(len(errs))-refused, counted.Queries.Load())
}

func TestSignUp(t *testing.T) {
	s := start(t, nil)
	ctx := t.Context()
	var told []string
	tell := func(key string) { // what the filters are told has no row yet
		taken, err := s.Store.Taken(ctx, "ann")
		require.NoError(t, err)
		require.False(t, taken)
		told = append(told, key)
	}
	s.names.onAdd = tell
	taken, err := s.Taken(ctx, "ann")
	require.NoError(t, err)
	require.False(t, taken)
	var u User
	_, queries := s.asked(func() { u, err = s.SignUp(ctx, "ann") })
	require.NoError(t, err)
	require.Zero(t, queries, "a free name costs no query")
	require.Equal(t, []string{"ann"}, told)
	_, queries = s.asked(func() {
		taken, err = s.Taken(ctx, "ann")
		require.NoError(t, err)
		require.True(t, taken)
		found, err := s.User(ctx, u.ID)
		require.NoError(t, err)
		require.Equal(t, u, found)
		_, err = s.SignUp(ctx, "ann")
		require.ErrorIs(t, err, ErrTaken)
	})
	require.Zero(t, queries, "sign-up filled the cache")
}

// A null that the cache keeps of a name does not hide a sign-up.
func TestSignUpReplacesNulls(t *testing.T) {
	s := start(t, nil)
	s.names.falsely["ann"] = true
	taken, err := s.Taken(t.Context(), "ann")
	require.NoError(t, err)
	require.False(t, taken)
	_, err = s.SignUp(t.Context(), "ann")
	require.NoError(t, err)
	taken, err = s.Taken(t.Context(), "ann")
	require.NoError(t, err)
	require.True(t, taken)
}

func TestSignUpWithoutItsFilterWritesNothing(t *testing.T) {
	s := start(t, nil)
	s.names.away = true
	_, err := s.SignUp(t.Context(), "ann")
	require.ErrorIs(t, err, ErrUnsure)
	s.names.away = false
	s.users.away = true
	_, err = s.SignUp(t.Context(), "ann")
	require.ErrorIs(t, err, ErrUnsure)
	taken, err := s.Store.Taken(t.Context(), "ann")
	require.NoError(t, err)
	require.False(t, taken)
	require.Zero(t, s.Counters.Database.Writes.Load())
}

func TestOneOfManySignUpsWins(t *testing.T) {
	s := start(t, nil)
	const rivals = mostCopies // each has a copy of the name in the filter until it has lost
	errs := make([]error, rivals)
	var group sync.WaitGroup
	for i := range rivals {
		group.Go(func() { _, errs[i] = s.SignUp(t.Context(), "wanted") })
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, ErrTaken)
	}
	require.Equal(t, 1, won)
}

func TestBanAndUnban(t *testing.T) {
	s := start(t, nil)
	ctx := t.Context()
	s.banned.falsely["8"] = true
	_, err := s.User(ctx, 8)
	require.NoError(t, err, "a false positive of the black list is no ban")
	for range 2 { // each twice: it is no error
		for range 2 {
			require.NoError(t, s.Ban(ctx, 7))
			_, err = s.User(ctx, 7)
			require.ErrorIs(t, err, ErrBanned)
		}
		require.Equal(t, 1, s.banned.copies["7"])
		for range 2 {
			require.NoError(t, s.Unban(ctx, 7))
			_, err = s.User(ctx, 7)
			require.NoError(t, err)
		}
		require.Zero(t, s.banned.copies["7"])
	}
	_, err = s.User(ctx, 9)
	require.NoError(t, err)
}

// Copies that lost removals leave behind keep nobody from being banned.
func TestBanWithAsManyCopiesAsFit(t *testing.T) {
	s := start(t, nil)
	s.banned.copies["7"] = mostCopies
	for range 2 {
		require.NoError(t, s.Ban(t.Context(), 7))
		_, err := s.User(t.Context(), 7)
		require.ErrorIs(t, err, ErrBanned)
		require.NoError(t, s.Unban(t.Context(), 7))
		_, err = s.User(t.Context(), 7)
		require.NoError(t, err)
	}
}

// A black list without room for a ban is not away: the ban is counted and logged, and the service not ready.
func TestBanWithoutRoom(t *testing.T) {
	s := start(t, nil)
	require.NoError(t, s.Ready(t.Context()))
	var log strings.Builder
	s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s.Filters.Banned = full{s.banned}
	require.ErrorIs(t, s.Ready(t.Context()), redisfilter.ErrFull)
	require.ErrorIs(t, s.Ban(t.Context(), 7), ErrUnsure)
	require.EqualValues(t, 1, s.Counters.Banned.Full.Load())
	require.Regexp(t, "level=WARN .*no room.* user=7", log.String())
	banned, err := s.Store.Banned(t.Context(), 7)
	require.NoError(t, err)
	require.False(t, banned)
}

// Without a black list that was loaded, bans are refused, and /readyz says so.
func TestABlackListThatWasNotLoadedIsNotReady(t *testing.T) {
	s := start(t, nil)
	s.banned.lost = true
	require.ErrorIs(t, s.Ready(t.Context()), redisfilter.ErrIncomplete)
}

func TestBanWithoutItsFilterWritesNothing(t *testing.T) {
	s := start(t, nil)
	s.banned.away = true
	require.ErrorIs(t, s.Ban(t.Context(), 7), ErrUnsure)
	banned, err := s.Store.Banned(t.Context(), 7)
	require.NoError(t, err)
	require.False(t, banned)
}

func TestUnbanWithoutItsFilter(t *testing.T) {
	s := start(t, nil)
	require.NoError(t, s.Ban(t.Context(), 7))
	s.banned.set(func() { s.banned.away = true })
	require.NoError(t, s.Unban(t.Context(), 7), "the copy that stays costs queries and nothing else")
	s.banned.set(func() { s.banned.away = false })
	_, err := s.User(t.Context(), 7)
	require.NoError(t, err)
}

// The cache may hold the opposite: whoever bans or unbans is told to do it again.
func TestBanAndUnbanWithoutTheCache(t *testing.T) {
	s := start(t, nil)
	ctx := t.Context()
	s.banned.falsely["7"] = true
	_, err := s.User(ctx, 7)
	require.NoError(t, err, "and the cache keeps that")
	for _, change := range []struct {
		make func(context.Context, int64) error
		want error
	}{{s.Ban, ErrBanned}, {s.Unban, nil}} {
		s.cache.on.Store(true)
		require.ErrorIs(t, change.make(ctx, 7), ErrCache)
		s.cache.on.Store(false)
		require.NoError(t, change.make(ctx, 7))
		_, err = s.User(ctx, 7)
		require.ErrorIs(t, err, change.want)
	}
	require.Zero(t, s.banned.copies["7"])
}

// However bans and unbans meet, no banned user is unknown to the filter.
func TestBansNeverLoseACopy(t *testing.T) {
	s := start(t, nil)
	const ids = 4
	errs := make([]error, 8)
	var group sync.WaitGroup
	for worker := range errs {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(worker)))
			for range 50 {
				change := s.Ban
				if random.IntN(2) == 0 {
					change = s.Unban
				}
				errs[worker] = errors.Join(errs[worker], change(context.Background(), 1+random.Int64N(ids)))
			}
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	for id := range int64(ids) {
		banned, err := s.Store.Banned(t.Context(), id+1)
		require.NoError(t, err)
		copies := s.banned.copies[string(idKey(id+1))]
		require.False(t, banned && copies == 0, "user %d is banned, and the filter says no", id+1)
	}
}
