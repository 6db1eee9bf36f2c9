package nextlog

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/vfs"
)

func newSource(t *testing.T, disk vfs.FS) *Source {
	t.Helper()
	require.NoError(t, disk.MkdirAll("db"))
	num := uint64(0)
	return &Source{FS: disk, Dir: "db", Logger: slog.New(slog.DiscardHandler), Check: func() error { return nil },
		NewNum:   func() uint64 { num++; return num },
		Memtable: func(log uint64) *memtable.Memtable { m := memtable.New(1 << 10); m.Log = log; return m }}
}

func files(t *testing.T, disk vfs.FS) []string {
	t.Helper()
	names, err := disk.List("db")
	require.NoError(t, err)
	return names
}

func TestTheNextLogIsPreparedOnceForEachTake(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	s := newSource(t, disk)
	require.Equal(t, Next{}, s.Take(), "nothing was prepared")
	for n := uint64(1); n < 3; n++ {
		require.False(t, s.Asked())
		s.Prepare()
		s.Prepare()
		require.True(t, s.Asked())
		next := s.Take() // waits for it
		require.Equal(t, n, next.Log.ID())
		require.Equal(t, n, next.Mem.Log)
		require.NoError(t, next.Log.CloseFile())
		next.Mem.Drop()
	}
	require.Len(t, files(t, disk), 2)
	s.Prepare()
	s.Wait(false)
	s.Drop()
	require.Len(t, files(t, disk), 2, "a log that is dropped is removed")
	s.Wait(true)
	s.Prepare()
	require.Equal(t, Next{}, s.Take(), "nothing is prepared after the last Wait")
}

func TestALogThatCannotBeMadeIsNoFailure(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	s := newSource(t, disk)
	failure := errors.New("the directory was moved")
	s.Check = func() error { return failure }
	s.Prepare()
	require.Equal(t, Next{}, s.Take())
	_, err := s.Create(7)
	require.ErrorIs(t, err, failure)
	require.Empty(t, files(t, disk))
	s.Check = func() error { return nil }
	s.Memtable = func(uint64) *memtable.Memtable { return nil }
	s.Prepare()
	next := s.Take()
	require.Nil(t, next.Mem)
	require.NotNil(t, next.Log, "a log is of use without a memtable")
	s.Discard(next.Log)
}
