package kv

import (
	"strings"
	"sync"
	"testing"
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

// A store may be closed at any moment of an examination.
func TestCloseBesideAnExamination(t *testing.T) {
	t.Parallel()
	for range 20 {
		db := openMem(t, nil)
		deleteKeys(t, db, 0, minTombstones)
		var group sync.WaitGroup
		for range 3 {
			group.Go(db.early.fire)
		}
		require.NoError(t, db.Close())
		group.Wait()
		db.early.fire()
		require.Zero(t, db.examineMemtable())
	}
}

// What is written while a timer ends is examined in its turn.
func TestAWatchIsArmedAgain(t *testing.T) {
	t.Parallel()
	db := openMem(t, nil)
	require.NoError(t, db.Set([]byte("k"), []byte("v"), nil))
	require.True(t, db.early.armed.Load())
	for range 3 {
		db.early.fire()
	}
	require.False(t, db.early.armed.Load())
	db.early.mu.Lock()
	db.early.again = time.Now().Add(time.Hour)
	db.early.mu.Unlock()
	require.NoError(t, db.Set([]byte("k"), []byte("v"), nil))
	require.True(t, db.early.armed.Load(), "a write does not wait for what expires")
}

// A write that replaces the memtable starts the timer, as all others do.
func TestAWriteToANewMemtableArmsTheWatch(t *testing.T) {
	t.Parallel()
	db := openMem(t, &Options{MemtableSize: 64 << 10})
	set(t, db, "k", strings.Repeat("x", 40<<10))
	db.early.armed.Store(false) // the timer has ended
	set(t, db, "l", strings.Repeat("x", 40<<10))
	require.True(t, db.early.armed.Load())
	require.NoError(t, db.Close())
}
