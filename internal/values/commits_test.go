package values

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

// Only values of at least SeparateFrom bytes go to the file, which a full one ends.
func TestCommitsSeparateLargeValues(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	c := ts.Commits()
	require.False(t, c.Has(batch(10)))
	require.False(t, c.Has(batch(60, 60)))
	mem := ts.newMem()
	record := ts.commit(batch(99, 100), 1, ts.newLog(), mem)
	require.Equal(t, []base.Kind{base.KindSet, base.KindSetSeparated}, kinds(t, record))
	require.False(t, mem.Sealed())
	require.EqualValues(t, c.current.w.Size(), ts.Written.Load())
	ts.commit(batch(1<<20), 3, ts.newLog(), mem)
	require.True(t, mem.Sealed())
	require.NoError(t, c.EndLog())
	require.NoError(t, c.EndLog(), "there is none")
}

// What a log's values have in memory is synced when it is much, and one sync at a time does that.
func TestCommitsSyncEarly(t *testing.T) {
	t.Parallel()
	ts := newTestStore(t)
	mem, log := ts.newMem(), ts.newLog()
	for i := range 3 * maxUnsynced >> 20 {
		ts.commit(batch(1<<20), base.SeqNum(i+1), log, mem)
	}
	out := ts.commits.current.log.out
	require.Eventually(t, func() bool { return out.Unsynced() < 2*maxUnsynced }, time.Minute, time.Millisecond)
	require.NoError(t, ts.Close())
	require.NoError(t, ts.failure)
}
