package kv

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeakedIteratorsAreNamed(t *testing.T) {
	db, err := Open("db", &Options{InMemory: true, TraceOpens: true})
	require.NoError(t, err)
	set(t, db, "a", "1")
	closed, err := db.NewIter(nil)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	leaked, err := db.NewIter(nil)
	require.NoError(t, err)
	snapshot := db.NewSnapshot()
	second, err := snapshot.NewIter(nil)
	require.NoError(t, err)
	require.True(t, leaked.First())

	err = db.Close()
	require.ErrorIs(t, err, ErrIteratorsOpen)
	require.ErrorIs(t, err, ErrSnapshotsOpen)
	require.Regexp(t, `snapshot 1 of 1 was opened at:\n\t.*TestLeakedIteratorsAreNamed`, err.Error())
	require.Len(t, regexp.MustCompile(`iterator \d of 2 was opened at:`).FindAllString(err.Error(), -1), 2)
	require.Regexp(t, `TestLeakedIteratorsAreNamed\n\t\t.*handles_test\.go:\d+`, err.Error())
	require.Equal(t, err, db.Close())

	require.False(t, leaked.Next(), "it is safe to use")
	require.ErrorIs(t, leaked.Error(), ErrClosed)
	require.False(t, second.Last())
	require.NoError(t, leaked.Close())
	require.NoError(t, leaked.Close())
	require.False(t, leaked.First())
	require.NoError(t, second.Close())
	require.NoError(t, snapshot.Close())
}

func TestOpenHandlesAreCountedAtClose(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	set(t, db, "k", "v")
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	s := db.NewSnapshot()
	other := db.NewSnapshot()
	require.NoError(t, other.Close())
	m := db.Metrics()
	require.Equal(t, 1, m.Iterators)
	require.Equal(t, 1, m.Snapshots)
	err = db.Close()
	require.ErrorIs(t, err, ErrIteratorsOpen)
	require.ErrorIs(t, err, ErrSnapshotsOpen)
	require.ErrorContains(t, err, "TraceOpens")
	require.NoError(t, it.Close())
	require.NoError(t, s.Close())
}
