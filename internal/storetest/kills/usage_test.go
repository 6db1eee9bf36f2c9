package kills

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A usage is what a process takes at one moment.
type usage struct {
	heap  uint64 // bytes that a garbage collection has left
	files int    // open descriptors; 0 where the system does not tell
	live  int    // of them, those of tables that the store has open by right
}

// currentUsage collects garbage first.
func currentUsage() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/dev/fd") // not there: not counted
	return usage{heap: m.HeapAlloc, files: len(open)}
}

// A usageTrend is what a process, or one like it again and again, takes as time goes
// on.
type usageTrend []usage

// Room for noise: options are random, caches of 8 MiB among them. How many tables a store has depends on how far
// compactions come, and so on the machine: they are taken off, and for a moment there may be those that
// a compaction has replaced, a quarter of them at most.
const (
	heapNoise = 16 << 20
	fileNoise = 32
)

// minSamples is how many make a trend.
const minSamples = 30

// thirds returns the most that was taken in the first third of the time, and in the
// last; of descriptors, beside those of live tables.
func (u usageTrend) thirds() (first, last usage) {
	peak := func(part usageTrend) (most usage) {
		for _, s := range part {
			most.heap, most.live = max(most.heap, s.heap), max(most.live, s.live)
			most.files = max(most.files, s.files-s.live)
		}
		return most
	}
	return peak(u[:len(u)/3]), peak(u[len(u)-len(u)/3:])
}

// check returns an error if the last third takes more than the first and half of it
// again, and more than noise explains. Fewer samples than minSamples tell nothing.
func (u usageTrend) check() error {
	if len(u) < minSamples {
		return nil
	}
	first, last := u.thirds()
	if last.heap > first.heap+first.heap/2+heapNoise {
		return fmt.Errorf("the heap grows: %s", u)
	}
	if last.files > first.files+first.files/2+fileNoise+last.live/4 {
		return fmt.Errorf("open files get more: %s", u)
	}
	return nil
}

func (u usageTrend) String() string {
	first, last := u.thirds()
	return fmt.Sprintf("heap %.1f MiB in the first third, %.1f in the last; "+
		"open files beside tables %d, %d (peaks of %d samples)",
		float64(first.heap)/(1<<20), float64(last.heap)/(1<<20), first.files, last.files, len(u))
}

func TestAUsageTrendTellsGrowthFromNoise(t *testing.T) {
	t.Parallel()
	trend := func(at func(i int) usage) (u usageTrend) {
		for i := range 90 {
			u = append(u, at(i))
		}
		return u
	}
	steady := trend(func(i int) usage { return usage{uint64(5+i%9) << 20, 20 + i%30, 0} })
	require.NoError(t, steady.check())
	require.ErrorContains(t, trend(func(i int) usage { return usage{uint64(i) << 20, 20, 0} }).check(),
		"the heap grows")
	require.ErrorContains(t, trend(func(i int) usage { return usage{5 << 20, i, 0} }).check(), "open files get more")
	require.NoError(t, trend(func(i int) usage { return usage{5 << 20, 20 + 10*i, 10 * i} }).check(), "tables get more")
	require.ErrorContains(t, trend(func(i int) usage { return usage{5 << 20, 40 + 10*i, 40} }).check(),
		"open files get more", "tables that were replaced stay open")
	require.NoError(t, usageTrend{}.check(), "too few to tell")
	require.Equal(t, "heap 13.0 MiB in the first third, 13.0 in the last; "+
		"open files beside tables 49, 49 (peaks of 90 samples)",
		steady.String())

	here := currentUsage()
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	require.NotZero(t, here.heap)
	if runtime.GOOS == "linux" {
		require.NotZero(t, here.files)
	}
}
