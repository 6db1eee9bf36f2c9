package diskspace

import (
	"log/slog"
	"math"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A store that finds no room has that of the ballast, once, and is full until it has made another.
func TestTheBallastGivesRoomOnce(t *testing.T) {
	t.Parallel()
	const size = 1000
	disk := vfs.NewMem()
	require.NoError(t, disk.MkdirAll("db"))
	ballast := filepath.Join("db", manifest.BallastName)
	var s Space
	s.Init(disk, "db", slog.New(slog.DiscardHandler))
	s.FindBallast()
	require.EqualValues(t, math.MaxInt64, s.Free())
	s.MakeBallast(size)
	had, err := disk.Stat(ballast)
	require.NoError(t, err)
	require.EqualValues(t, size, had)

	require.True(t, s.Lack(syscall.ENOSPC), "there is the room of the ballast")
	require.Error(t, errOf(disk.Stat(ballast)))
	require.True(t, s.Full())
	require.Zero(t, s.Free())
	require.False(t, s.Lack(syscall.ENOSPC))
	s.Note(math.MaxInt64)
	require.Zero(t, s.Free(), "a disk that does not tell is full until something has found room")
	s.MakeBallast(size)
	require.False(t, s.Full())
	require.EqualValues(t, math.MaxInt64, s.Free())

	var next Space
	next.Init(disk, "db", slog.New(slog.DiscardHandler))
	next.FindBallast()
	require.True(t, next.Lack(syscall.ENOSPC))
	require.Error(t, errOf(disk.Stat(ballast)), "an earlier process made it")
}

func errOf(_ int64, err error) error { return err }
