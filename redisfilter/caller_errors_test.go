package redisfilter

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
)

// An error that Redis has no part in does not say that Redis is away.
func TestErrorsOfTheProgram(t *testing.T) {
	t.Parallel()
	srv, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	c := openClient(t, srv.Addr())

	s, err := New(t.Context(), c, "s", 1000, 0.01, quiet(Options{}))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	away := errors.New("the database is away")
	err = s.Load(t.Context(), func(context.Context, time.Time, func(...[]byte) error) error { return away })
	require.ErrorIs(t, err, away)
	require.NotErrorIs(t, err, ErrUnavailable)

	local, err := s.Local()
	require.NoError(t, err)
	require.ErrorIs(t, s.Import(t.Context(), local), ErrIncomplete, "its keys would be in no generation")
	require.NoError(t, s.Load(t.Context(), sourceOf()))
	require.NoError(t, s.Import(t.Context(), local))

	growing, err := New(t.Context(), c, "growing", 1000, 0.01, quiet(Options{Growth: 2, StartEmpty: true}))
	require.NoError(t, err)
	defer func() { require.NoError(t, growing.Close()) }()
	_, err = growing.Export(t.Context())
	require.ErrorContains(t, err, "Growth")
	require.NotErrorIs(t, err, ErrUnavailable)
}

// Each key has an answer, with an error too.
func TestAnswersOfAClosedSet(t *testing.T) {
	t.Parallel()
	srv, err := inprocess.Start()
	require.NoError(t, err)
	t.Cleanup(srv.Close)
	s, err := New(t.Context(), openClient(t, srv.Addr()), "s", 1000, 0.01, quiet(Options{StartEmpty: true}))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	keys := [][]byte{[]byte("a"), []byte("b")}
	fresh, err := s.MAddNew(t.Context(), keys)
	require.ErrorIs(t, err, ErrClosed)
	require.Equal(t, []bool{false, false}, fresh)
	maybe, err := s.MContains(t.Context(), keys)
	require.ErrorIs(t, err, ErrClosed)
	require.Equal(t, []bool{true, true}, maybe)
}
