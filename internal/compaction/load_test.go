package compaction

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

func TestLoadOfLevel0(t *testing.T) {
	t.Parallel()
	failed := errors.New("test")
	for _, c := range []struct {
		runs   int
		failed error
		slows  bool
		want   float64
	}{
		{11, nil, false, 0},
		{12, nil, true, 1.0 / 24},
		{23, nil, true, 0.5},
		{35, nil, true, 1},
		{50, nil, true, 1},
		{23, failed, true, 0.5},
	} {
		l := Load{Input: input(versionOf(t, flushes(c.runs)...))}
		l.L0SlowdownThreshold, l.L0StopThreshold = 12, 36
		require.Equal(t, c.slows, l.Slows(), "%d runs", c.runs)
		require.InDelta(t, c.want, l.Pressure(c.failed), 1e-9, "%d runs", c.runs)
	}
}

// Writers are slowed down for blob files as memtables with their garbage pile up, if something is about to free space.
func TestLoadOfBlobFiles(t *testing.T) {
	t.Parallel()
	l := Load{Input: inputWithBlobs(garbageVersion(t)), Pending: 100 << 30}
	l.L0SlowdownThreshold, l.L0StopThreshold = 12, 36
	require.Greater(t, l.BlobPressure(), 1.0)
	require.Zero(t, l.Pressure(nil), "nothing frees space")
	require.False(t, l.Slows())
	l.Busy = true
	require.InDelta(t, 1, l.Pressure(nil), 0)
	require.Zero(t, l.Pressure(errors.New("test")))
	require.True(t, l.Slows())

	l = Load{Input: input(versionOf(t)), Pending: 100 << 30, Busy: true}
	require.Zero(t, l.BlobPressure(), "there are no blob files")
	l.Disk.Full = true
	require.True(t, l.Slows())
}

func TestWhatBlocksLevel0(t *testing.T) {
	t.Parallel()
	v := versionOf(t, flushes(2)...)
	path := func(num uint64) string { return "db/" + strconv.FormatUint(num, 10) }
	err := Level0Blocked(v, path)
	require.NotErrorIs(t, err, base.ErrCorruption)
	damaged := v.Levels[0].Runs[1].Tables()[0]
	damaged.Quarantined = true
	err = Level0Blocked(v, path)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, path(damaged.Num))
}

// Sleeps that are too short for a timer are saved up, and forgotten when the pressure is over.
func TestThrottle(t *testing.T) {
	t.Parallel()
	var s Throttle
	require.Zero(t, s.Sleep(0, 1<<30))
	require.Zero(t, s.Sleep(1, slowRate/2000))
	require.InDelta(t, time.Millisecond, s.Sleep(1, slowRate/2000+1), float64(10*time.Microsecond))
	require.Zero(t, s.Sleep(1, slowRate/2000))
	require.Zero(t, s.Sleep(0, 1))
	require.Zero(t, s.Sleep(1, slowRate/2000))
	require.Equal(t, time.Second, s.Sleep(1, 1<<30))
	require.Less(t, s.Sleep(0.1, slowRate), 30*time.Millisecond)
}
