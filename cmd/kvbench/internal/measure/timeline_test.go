package measure

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/internal/property"
)

// TestNothingIsLost holds the intervals to the operations, however long it took.
func TestNothingIsLost(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		r := StartTimeline()
		counts := map[time.Duration]int64{} // by moment
		at, total := time.Duration(0), int64(0)
		for _, step := range rapid.SliceOf(rapid.Int64Range(0, int64(20*time.Second))).Draw(t, "steps") {
			at += time.Duration(step)
			r.Add(3, r.start.Add(at))
			counts[at] += 3
			total += 3
		}
		line := r.Timeline(r.start.Add(at))
		require.LessOrEqual(t, len(line.Operations), maxIntervals)
		sum := int64(0)
		for _, n := range line.Operations {
			sum += n
		}
		require.Equal(t, total, sum)
		require.InDelta(t, at.Seconds(), line.Interval*float64(len(line.Operations)), line.Interval,
			"it ends where it ended")
		for i, got := range line.Operations {
			want := int64(0)
			for moment, n := range counts {
				if int(moment/r.interval) == i {
					want += n
				}
			}
			require.Equal(t, want, got, "interval %d", i)
		}
	})
}

func TestEventsAreInOrderAndBounded(t *testing.T) {
	r := StartTimeline()
	var wait sync.WaitGroup
	for i := range 2 {
		wait.Go(func() {
			for n := range maxEvents {
				began := r.start.Add(time.Duration(maxEvents-n) * time.Millisecond)
				r.Background(engine.Background{Kind: engine.Compaction, Began: began, Ended: began.Add(time.Second),
					Level: i, OutputLevel: i + 1, Bytes: 7})
				r.Add(1, began)
			}
		})
	}
	r.Background(engine.Background{Kind: engine.Flush, Began: r.start.Add(-time.Second), Ended: r.start})
	wait.Wait()
	line := r.Timeline(r.start.Add(10 * time.Second))
	require.Len(t, line.Events, maxEvents)
	require.Equal(t, maxEvents+1, line.Dropped)
	for i, e := range line.Events {
		require.GreaterOrEqual(t, e.From, 0.0, "work that began before counts from the beginning")
		require.LessOrEqual(t, e.From, e.To)
		require.True(t, i == 0 || line.Events[i-1].From <= e.From)
	}
}
