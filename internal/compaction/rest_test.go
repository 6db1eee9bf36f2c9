package compaction

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A restSim is a Rest in a bubble, with a store of 40 MiB, 30 of them in level 0.
type restSim struct {
	mu sync.Mutex // held by the test, except while time passes
	Rest
	in      *Input
	flushed int64
	reads   Reads
	free    int64
	busy    int // threads
	looks   int
}

// inRest runs a test of a Rest.
func inRest(t *testing.T, after time.Duration, test func(t *testing.T, s *restSim)) {
	synctest.Test(t, func(t *testing.T) {
		s := &restSim{in: input(versionOf(t, append(flushes(3), table(lastLevel, "a", "z", 10*mib))...)),
			free: math.MaxInt64}
		s.After = after
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Look = func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.looks++
			s.Note(s.in.Version, time.Now(), s.flushed, s.reads, s.free)
		}
		s.Opened(s.in.Version, time.Now())
		s.schedule()
		test(t, s)
		s.Stop()
		if s.timer != nil {
			s.timer.Stop()
		}
	})
}

func (s *restSim) schedule() { s.Schedule(s.in.Version, time.Now(), s.busy) }

// succeed ends a job.
func (s *restSim) succeed(j *Job) {
	scheduler := Scheduler{Rest: s.Rest}
	scheduler.Succeeded(j)
	s.Rest = scheduler.Rest
}

// pass lets time pass.
func (s *restSim) pass(d time.Duration) {
	s.mu.Unlock()
	defer s.mu.Lock()
	time.Sleep(d)
	synctest.Wait()
}

// flush flushes a number of bytes.
func (s *restSim) flush(bytes int64) {
	s.Flushing(time.Now())
	s.flushed += bytes
	s.schedule()
}

// A store is idle when nothing was flushed for a while, or for four times as long as usual.
func TestAStoreIsIdleAfterSomeTime(t *testing.T) {
	t.Parallel()
	inRest(t, 10*time.Second, func(t *testing.T, s *restSim) {
		s.pass(9 * time.Second)
		require.Zero(t, s.looks)
		s.pass(4 * time.Second)
		require.Equal(t, 1, s.looks)
		require.Equal(t, Idle{Flushed: 30 * mib, Free: math.MaxInt64}, *s.Take(), "level 0 when it was opened")
		require.Nil(t, s.Take())
		for range 30 { // it flushes every 20 seconds
			s.flush(mib)
			s.pass(20 * time.Second)
		}
		looks := s.looks
		require.LessOrEqual(t, looks, 2, "the first interval was shorter")
		s.pass(50 * time.Second)
		require.Equal(t, looks, s.looks)
		s.pass(40 * time.Second)
		require.Equal(t, looks+1, s.looks)
		require.EqualValues(t, 45*mib, s.Take().Flushed, "little more than the store's size")
	})
	for _, never := range []time.Duration{0, -1} {
		inRest(t, never, func(t *testing.T, s *restSim) {
			s.pass(time.Hour)
			require.Zero(t, s.looks)
		})
	}
}

// While nothing pays for a merge, the store is looked at less and less often.
func TestLooksBecomeRare(t *testing.T) {
	t.Parallel()
	inRest(t, time.Second, func(t *testing.T, s *restSim) {
		for range 24 * 60 {
			s.pass(time.Minute)
			s.schedule()
		}
		require.Greater(t, s.looks, 100)
		require.Less(t, s.looks, 160)
	})
}

// Reads count from the first look after a flush, and what a job has written is paid for.
func TestReadsPayOnce(t *testing.T) {
	t.Parallel()
	inRest(t, 10*time.Second, func(t *testing.T, s *restSim) {
		s.reads.Visits = 1 << 30
		s.pass(13 * time.Second)
		require.Zero(t, s.Take().Lost)
		s.schedule()
		s.reads.Visits *= 2
		s.pass(time.Minute)
		idle := s.Take()
		require.InDelta(t, (1<<30)*visitCost/byteCost/idleFactor, idle.Lost, 1)
		s.in.Idle = &Idle{Flushed: math.MaxInt64, Free: math.MaxInt64}
		j := Pick(s.in)
		ctx := s.Begin(j)
		s.succeed(j)
		s.schedule()
		s.pass(time.Minute)
		require.Equal(t, Idle{Flushed: 20 * mib, Lost: idle.Lost - 10*mib, Free: math.MaxInt64}, *s.Take())
		require.NoError(t, ctx.Err())
		s.flush(mib)
		require.Error(t, ctx.Err(), "a flush ends the job")
		s.pass(2 * time.Minute)
		require.Equal(t, Idle{Flushed: 20*mib + mib*9/8, Free: math.MaxInt64}, *s.Take())
		require.NoError(t, s.Begin(&Job{}).Err())
	})
}

// The longest time that options can have does not overflow.
func TestAVeryLongRest(t *testing.T) {
	t.Parallel()
	inRest(t, math.MaxInt64, func(t *testing.T, s *restSim) {
		for range 10_000 {
			s.pass(time.Hour)
			s.schedule()
		}
		require.LessOrEqual(t, s.looks, 1000)
		require.Nil(t, s.Take())
	})
}

// While a job runs no timer does: the pause after it begins when it ends.
func TestNoLookWhileAJobRuns(t *testing.T) {
	t.Parallel()
	inRest(t, 10*time.Second, func(t *testing.T, s *restSim) {
		s.pass(13 * time.Second)
		looks := s.looks
		require.NotNil(t, s.Take())
		s.busy = 1
		s.schedule()
		s.pass(time.Hour)
		require.Equal(t, looks, s.looks)
		s.busy = 0
		s.schedule()
		s.pass(26 * time.Second)
		require.Equal(t, looks+1, s.looks)
	})
}

// Looks at a time when other stores compact do not make later ones rare.
func TestLooksThatFindOthersBusy(t *testing.T) {
	t.Parallel()
	inRest(t, 10*time.Second, func(t *testing.T, s *restSim) {
		s.free = 0
		for range 60 {
			s.pass(time.Minute)
			s.schedule()
			require.Nil(t, s.Take())
		}
		s.free = math.MaxInt64
		s.pass(time.Minute)
		require.NotNil(t, s.Take())
	})
}

// A job stops when a flush runs, also if that began before the job.
func TestABusyStoreStopsAJob(t *testing.T) {
	t.Parallel()
	inRest(t, 10*time.Second, func(t *testing.T, s *restSim) {
		ctx := s.Begin(&Job{Reason: ReasonIdle})
		s.pass(13 * time.Second)
		s.Busy(time.Now())
		require.Error(t, ctx.Err())
		require.Nil(t, s.Take(), "what an earlier look found does not hold")
		s.schedule()
		s.pass(9 * time.Second)
		require.Nil(t, s.Take())
	})
}

// A job that fails is charged for, and the next one begins much later.
func TestAFailedIdleJob(t *testing.T) {
	t.Parallel()
	inRest(t, 10*time.Second, func(t *testing.T, s *restSim) {
		jobs := 0
		for range 3600 {
			s.pass(time.Second)
			if s.in.Idle = s.Take(); s.in.Idle != nil {
				if j := Pick(s.in); j != nil {
					jobs++
					before := s.written
					require.NotNil(t, s.Begin(j))
					require.Equal(t, before+40*mib, s.written)
				}
			}
			s.flushed += mib
			s.schedule()
		}
		require.Greater(t, jobs, 1)
		require.Less(t, jobs, 7)
		s.pass(time.Hour)
		require.Equal(t, s.flushed*9/8-s.written, s.Take().Flushed)
	})
}
