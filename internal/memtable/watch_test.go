package memtable

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A memtable is examined when it has rested for an interval, and again when it has a quarter more.
func TestWhenAMemtableIsExamined(t *testing.T) {
	t.Parallel()
	g, s := growth{}, stepStop
	measured := func(log uint64, size int64, due bool, want watchStep) {
		t.Helper()
		g, s = g.next(log, size, due)
		require.Equal(t, want, s)
	}
	measured(7, 1000, false, stepMeasure) // it is new
	measured(7, 2000, false, stepMeasure) // it grows
	measured(7, 2400, false, stepExamine) // little
	measured(7, 2500, false, stepMeasure)
	measured(7, 2500, false, stepStop)
	measured(7, 2500, true, stepExamine)
	measured(7, 2500, false, stepStop)
	measured(7, 3000, false, stepMeasure)
	measured(7, 3400, false, stepExamine) // it has grown slowly
	measured(9, 3300, true, stepMeasure)  // another one
	measured(9, 3300, false, stepExamine)
	measured(9, 3300, false, stepStop)
	measured(11, 0, false, stepMeasure)
	measured(11, 0, false, stepStop)
}

// watched returns a watch of a memtable, and counts its examinations.
func watched(m *Memtable) (w *Watch, examined *atomic.Int64) {
	w, examined = new(Watch), new(atomic.Int64)
	w.Attach(func() (uint64, int64) { return m.Log, m.Size() }, func() time.Duration { examined.Add(1); return 0 })
	return w, examined
}

// A watch may be stopped at any moment of an examination, and examines nothing after that.
func TestStopBesideAnExamination(t *testing.T) {
	t.Parallel()
	for range 20 {
		m := New(1 << 16)
		w, examined := watched(m)
		w.Written(m)
		var group sync.WaitGroup
		for range 3 {
			group.Go(w.fire)
		}
		w.Stop()
		before := examined.Load()
		group.Wait()
		w.fire()
		require.Equal(t, before, examined.Load())
	}
}

// What is written while a timer ends is examined in its turn.
func TestAWatchIsArmedAgain(t *testing.T) {
	t.Parallel()
	m := New(1 << 16)
	w, _ := watched(m)
	w.Written(m)
	require.False(t, w.Idle())
	for range 3 {
		w.fire()
	}
	require.True(t, w.Idle())
	w.mu.Lock()
	w.again = time.Now().Add(time.Hour)
	w.mu.Unlock()
	w.Written(m)
	require.False(t, w.Idle(), "a write does not wait for what expires")
	w.Stop()
}

// What waits for its turn in a bubble of synctest lets time pass there, on which the one before it may wait.
func TestTurnsOfAWatchInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		w.Attach(nil, nil)
		start := time.Now()
		for range 3 {
			require.True(t, w.Begin())
			go w.Run(func() { time.Sleep(time.Second) })
		}
		w.Stop()
		require.Equal(t, 3*time.Second, time.Since(start), "one at a time")
	})
}
