package compaction

import (
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/version"
)

// scheduler returns a Scheduler, and its mutex.
func scheduler() (*Scheduler, *sync.Mutex) {
	mu := new(sync.Mutex)
	s := &Scheduler{Backoff: Backoff{First: time.Second, Max: 10 * time.Second}}
	s.Change = func(change func()) {
		mu.Lock()
		defer mu.Unlock()
		change()
	}
	return s, mu
}

// A job marks its inputs and reserves its output, until it ends, and pins its version until it is unpinned.
func TestBeginAndEnd(t *testing.T) {
	t.Parallel()
	s, _ := scheduler()
	v := versionOf(t, flushes(4)...)
	in := input(v)
	in.State = &s.State
	for _, c := range []struct {
		change             func(j *Job)
		background, merges int
	}{
		{func(*Job) {}, 1, 0},
		{func(j *Job) { j.Asked = true }, 0, 1},
		{func(j *Job) { j.Asked, j.Kind = true, CollectBlobs }, 0, 0},
	} {
		j := Pick(in)
		require.NotNil(t, j)
		c.change(j)
		s.Begin(j)
		require.Equal(t, []int{1, c.background, c.merges}, []int{s.Running, s.Background, s.Merges})
		require.True(t, s.IsReserved(j.Output, j.Span))
		require.True(t, v.InUse())
		require.True(t, v.Level0()[0].Compacting)
		require.True(t, in.Busy(j))
		require.True(t, s.Waits())
		s.End(j)
		require.Zero(t, s.Running+s.Background+s.Merges+len(s.Reserved))
		require.False(t, v.Level0()[0].Compacting)
		require.False(t, s.Waits())
		for range 2 {
			j.Unpin(func(v *version.Version) { require.True(t, v.Unref(), "once") })
		}
		require.False(t, v.InUse())
	}
}

// Pauses double, up to a limit, until a job works. That ends the pause, and nothing waits for the timer.
func TestPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, mu := scheduler()
		errTest := errors.New("test")
		for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			start := time.Now()
			s.Change(func() {
				wait, damaged := s.Retry(errTest, false)
				require.Equal(t, want*time.Second, wait)
				require.False(t, damaged)
			})
			for paused := true; paused; {
				time.Sleep(time.Millisecond)
				mu.Lock()
				paused = s.Paused
				mu.Unlock()
			}
			require.GreaterOrEqual(t, time.Since(start), want*time.Second)
			require.Equal(t, errTest, s.Cause, "until a job works")
		}
		s.Change(func() {
			_, _ = s.Retry(errTest, false)
			s.Succeeded(&Job{})
			require.False(t, s.Paused)
			require.NoError(t, s.Cause)
			wait, _ := s.Retry(errTest, false)
			require.Equal(t, time.Second, wait)
		})
		s.Stop()
		time.Sleep(time.Hour)
		require.True(t, s.Paused, "for good")
	})
}

// Failures to read are damage when there are several in a row.
func TestReadFailuresInARowAreDamage(t *testing.T) {
	t.Parallel()
	s, _ := scheduler()
	var damage []bool
	for _, reading := range []bool{true, true, false, true, true, true, true} {
		_, damaged := s.Retry(errors.New("test"), reading)
		damage = append(damage, damaged)
	}
	s.Stop()
	require.Equal(t, []bool{false, false, false, false, false, true, false}, damage)
}

// What may be healthy is left alone for the longest wait, and what is damaged for good.
func TestWhatIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, mu := scheduler()
		v := versionOf(t, flushes(2)...)
		tables := v.Level0()
		mu.Lock()
		require.False(t, s.SetAside(nil, 6, false), "a store that opens has no version yet")
		s.Quarantine(v, tables[:1], true)
		s.Quarantine(v, tables, false)
		require.Equal(t, tables, s.Quarantined)
		require.False(t, s.SetAside(v, 7, false))
		require.True(t, s.SetAside(v, 7, true))
		require.False(t, s.SetAside(v, 8, true))
		require.True(t, s.SetAside(v, 8, false))
		require.Equal(t, map[uint64]bool{6: true, 7: true, 8: true}, s.StuckBlobs(v))
		mu.Unlock()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Equal(t, map[uint64]bool{7: true, 8: true}, s.StuckBlobs(v), "those are damaged")
		require.True(t, tables[0].Quarantined)
		require.False(t, tables[1].Quarantined)
		s.Quarantine(v, nil, true)
		require.Equal(t, tables[:1], s.Quarantined, "those that are not left alone any more are forgotten")
	})
}

func TestPressureOfBlobFiles(t *testing.T) {
	t.Parallel()
	s := BlobSpace{Garbage: 100, Allowed: 100, Batch: 40}
	for pending, want := range map[float64]float64{0: 0, 20: 0, 30: 0.5, 40: 1, 60: 2, math.Inf(-1): 0} {
		require.InDelta(t, want, s.Pressure(pending, 10), 1e-9)
		require.Zero(t, s.Pressure(pending, 100))
	}
}
