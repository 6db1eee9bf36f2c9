package siftraft

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestStable(t *testing.T) {
	s := openStore(t)
	_, err := s.Get([]byte("hello"))
	require.Equal(t, ErrKeyNotFound, err)
	require.EqualError(t, err, "not found", "raft compares texts")
	_, err = s.GetUint64([]byte("hello"))
	require.EqualError(t, err, "not found", "raft compares texts")

	require.NoError(t, s.Set([]byte("hello"), []byte("world")))
	require.NoError(t, s.Set([]byte("empty"), nil))
	require.NoError(t, s.SetUint64([]byte("number"), 1<<63+5))
	value, err := s.Get([]byte("hello"))
	require.NoError(t, err)
	require.Equal(t, "world", string(value))
	value, err = s.Get([]byte("empty"))
	require.NoError(t, err)
	require.Empty(t, value)
	n, err := s.GetUint64([]byte("number"))
	require.NoError(t, err)
	require.EqualValues(t, uint64(1<<63+5), n)

	require.NoError(t, s.Set([]byte("hello"), []byte("there")))
	again, err := New(s.db, nil)
	require.NoError(t, err)
	value, err = again.Get([]byte("hello"))
	require.NoError(t, err)
	require.Equal(t, "there", string(value))
}

func TestANumberHasEightBytes(t *testing.T) {
	s := openStore(t)
	require.NoError(t, s.Set([]byte("hello"), []byte("world")))
	_, err := s.GetUint64([]byte("hello"))
	require.ErrorContains(t, err, "has 5 bytes")
}

func TestTheLogAndTheStableStoreAreApart(t *testing.T) {
	s := openStore(t)
	require.NoError(t, s.StoreLogs(entries(1, 3, 1)))
	require.NoError(t, s.Set([]byte{0, 0, 0, 0, 0, 0, 0, 2}, []byte("stable")))
	require.NoError(t, s.DeleteRange(1, 2))
	value, err := s.Get([]byte{0, 0, 0, 0, 0, 0, 0, 2})
	require.NoError(t, err)
	require.Equal(t, "stable", string(value))
	requireLog(t, s, 3, 3, 1)
}

// Raft looks for a state before it makes one, by what both stores say of what is not there.
func TestRaftSeesWhetherANodeIsNew(t *testing.T) {
	s := openStore(t)
	has, err := raft.HasExistingState(s, s, raft.NewInmemSnapshotStore())
	require.NoError(t, err)
	require.False(t, has)
	require.NoError(t, s.SetUint64([]byte("CurrentTerm"), 1))
	has, err = raft.HasExistingState(s, s, raft.NewInmemSnapshotStore())
	require.NoError(t, err)
	require.True(t, has)
}
