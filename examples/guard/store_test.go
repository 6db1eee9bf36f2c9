package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
)

// opener opens a database again and again: as other processes do.
type opener func(context.Context) (*guard.Store, error)

func TestSQLite(t *testing.T) {
	dir := t.TempDir()
	testStore(t, func(ctx context.Context) (*guard.Store, error) { return guard.OpenSQLite(ctx, dir) })
}

func TestPostgreSQL(t *testing.T) {
	connect := startPostgres(t)
	if connect == "" {
		t.Skip("there is no PostgreSQL")
	}
	open := func(ctx context.Context) (*guard.Store, error) {
		return guard.OpenPostgres(ctx, connect, 8, 2*time.Second)
	}
	testTogether(t, open)
	testStore(t, open)
}

// testStore runs all checks on one database, in order.
func testStore(t *testing.T, open opener) {
	s, err := open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Ping(t.Context()))
	for _, check := range []struct {
		name string
		run  func(*testing.T, *guard.Store)
	}{
		{"Seed", checkSeed}, {"Source", checkSource}, {"SourceStops", checkSourceStops},
		{"Rows", checkRows}, {"OneNameOnce", checkOneName}, {"Bans", checkBans}, {"Canceled", checkCanceled},
		{"Late", checkLate},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(t, s) })
	}
}

// testTogether opens the empty database many times at once: all see one instance.
func testTogether(t *testing.T, open opener) {
	const processes = 4
	instances, errs := make([]string, processes), make([]error, processes)
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() {
			s, err := open(t.Context())
			if err == nil {
				instances[i], err = s.Instance, s.Close()
			}
			errs[i] = err
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Regexp(t, `^[a-z0-9]{10}$`, instances[0])
	require.Len(t, slices.Compact(instances), 1)
}

func checkRows(t *testing.T, s *guard.Store) {
	ctx := t.Context()
	const id = 1 << 61
	_, found, err := s.Name(ctx, id)
	require.NoError(t, err)
	require.False(t, found)
	inserted, err := s.Insert(ctx, guard.User{ID: id, Name: "ann"})
	require.NoError(t, err)
	require.True(t, inserted)
	name, found, err := s.Name(ctx, id)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "ann", name)
	for name, want := range map[string]bool{"ann": true, "anna": false} {
		taken, err := s.Taken(ctx, name)
		require.NoError(t, err)
		require.Equal(t, want, taken, name)
	}
	for _, other := range []guard.User{{ID: id + 1, Name: "ann"}, {ID: id, Name: "bob"}} {
		inserted, err = s.Insert(ctx, other)
		require.NoError(t, err)
		require.False(t, inserted, "%v: the name or the identifier is another's", other)
	}
}

func checkOneName(t *testing.T, s *guard.Store) {
	const rivals = 16
	won, errs := make([]bool, rivals), make([]error, rivals)
	var group sync.WaitGroup
	for i := range rivals {
		group.Go(func() { won[i], errs[i] = s.Insert(t.Context(), guard.User{ID: int64(1<<50 + i), Name: "wanted"}) })
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Len(t, slices.DeleteFunc(won, func(won bool) bool { return !won }), 1, "one wins")
}

func checkBans(t *testing.T, s *guard.Store) {
	ctx := t.Context()
	for i, step := range []struct {
		do      func(context.Context, int64) (bool, error)
		changed bool
		banned  bool
	}{
		{s.Unban, false, false}, {s.Ban, true, true}, {s.Ban, false, true}, {s.Unban, true, false},
		{s.Unban, false, false},
	} {
		changed, err := step.do(ctx, 7)
		require.NoError(t, err)
		require.Equal(t, step.changed, changed, "step %d", i)
		banned, err := s.Banned(ctx, 7)
		require.NoError(t, err)
		require.Equal(t, step.banned, banned, "step %d", i)
	}
}

func checkSeed(t *testing.T, s *guard.Store) {
	ctx := t.Context()
	for range 2 { // the second finds users
		require.NoError(t, s.Seed(ctx, 3000))
	}
	require.NoError(t, s.Seed(ctx, 4000))
	for id, exists := range map[int64]bool{1: true, 3000: true, 3001: false} {
		name, found, err := s.Name(ctx, id)
		require.NoError(t, err)
		require.Equal(t, exists, found)
		if exists {
			require.Equal(t, fmt.Sprintf("user%d", id), name)
		}
	}
}

// source is a method of a store.
type source func(context.Context, time.Time, func(...[]byte) error) error

// collect returns what a source hands over.
func collect(t *testing.T, since time.Time, source source) []string {
	t.Helper()
	var all []string
	require.NoError(t, source(t.Context(), since, func(keys ...[]byte) error {
		for _, key := range keys {
			all = append(all, string(key))
		}
		return nil
	}))
	return all
}

func checkSource(t *testing.T, s *guard.Store) {
	_, err := s.Ban(t.Context(), 11)
	require.NoError(t, err)
	now := time.Now()
	for _, since := range []time.Time{{}, now} { // those of now reach back by guard.Margin
		ids, names := collect(t, since, s.IDs), collect(t, since, s.Names)
		require.Len(t, names, len(ids))
		require.Len(t, ids, 3000, "three batches")
		for id := int64(1); id <= 3000; id += 500 {
			require.Contains(t, ids, strconv.FormatInt(id, 10))
			require.Contains(t, names, fmt.Sprintf("user%d", id))
		}
		require.Equal(t, []string{"11"}, collect(t, since, s.BannedIDs))
	}
	require.Empty(t, collect(t, now.Add(guard.Margin+time.Hour), s.IDs))
	_, err = s.Unban(t.Context(), 11)
	require.NoError(t, err)
}

func checkSourceStops(t *testing.T, s *guard.Store) {
	full := errors.New("no room")
	calls := 0
	err := s.IDs(t.Context(), time.Time{}, func(...[]byte) error {
		calls++
		return fmt.Errorf("add: %w", full)
	})
	require.ErrorIs(t, err, full)
	require.Equal(t, 1, calls, "after an error nothing more is handed over")
}

func checkCanceled(t *testing.T, s *guard.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.Name(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Insert(ctx, guard.User{ID: 1 << 60, Name: "late"})
	require.ErrorIs(t, err, context.Canceled)
	taken, err := s.Taken(t.Context(), "late")
	require.NoError(t, err)
	require.False(t, taken)
}

// lateContext is that of a statement which the network held until its deadline was over.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// No row is written after the deadline of its writer, who was told that it failed.
func checkLate(t *testing.T, s *guard.Store) {
	late := lateContext{t.Context(), time.Now()}
	_, err := s.Insert(late, guard.User{ID: 1 << 59, Name: "too-late"})
	require.ErrorIs(t, err, guard.ErrLate)
	taken, err := s.Taken(t.Context(), "too-late")
	require.NoError(t, err)
	require.False(t, taken)
	_, err = s.Ban(late, 12)
	require.ErrorIs(t, err, guard.ErrLate)
	banned, err := s.Banned(t.Context(), 12)
	require.NoError(t, err)
	require.False(t, banned)

	early := lateContext{t.Context(), time.Now().Add(time.Hour)}
	for _, first := range []bool{true, false} {
		inserted, err := s.Insert(early, guard.User{ID: 1 << 59, Name: "early"})
		require.NoError(t, err)
		require.Equal(t, first, inserted)
	}
}
