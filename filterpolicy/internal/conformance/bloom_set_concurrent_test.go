package conformance

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/bloom"
)

var bloomConcurrent = Of(bloom.NewConcurrent)

func TestBloomConcurrentSet(t *testing.T) { SetSuite(t, bloomConcurrent) }

// One goroutine after the other, the two kinds of sets are the same.
func TestBloomConcurrentSetIsASet(t *testing.T) {
	for _, n := range []int{1, 100, 20_000} {
		s, c := bloomFamily.New(t, n, 0.01), bloomConcurrent.New(t, n, 0.01)
		for i := range uint64(2 * n) {
			require.Equal(t, s.ContainsHash(Hash(1, i)), c.ContainsHash(Hash(1, i)))
			require.Equal(t, s.AddNewHash(Hash(1, i)), c.AddNewHash(Hash(1, i)))
		}
		require.Equal(t, s.Len(), c.Len())
		require.Equal(t, s.Cap(), c.Cap())
		require.Equal(t, s.Size(), c.Size())
		require.Equal(t, s.FillRatio(), c.FillRatio())
		require.Equal(t, s.FalsePositiveRate(), c.FalsePositiveRate())
		require.True(t, bytes.Equal(Bytes(t, s), Bytes(t, c)))
		RoundTrip(t, c, bloomFamily.Zero)
		RoundTrip(t, s, bloomConcurrent.Zero)
	}
}

// Goroutines add overlapping keys, ask for those that they know to be there, and read the
// whole set, all at once. Run with -race.
func TestBloomConcurrentSetWithoutALock(t *testing.T) {
	const workers = 8
	each := uint64(Share(40_000))
	c := bloomConcurrent.New(t, int(each)*(workers+1), 0.01)
	want := bloomFamily.New(t, int(each)*(workers+1), 0.01)
	missing := make([]int, workers)
	var group sync.WaitGroup
	for w := range uint64(workers) {
		for i := range 2 * each { // half of a worker's keys are the next one's too
			want.AddHash(Hash(0, w*each+i))
		}
		group.Go(func() {
			for i := range 2 * each {
				c.AddHash(Hash(0, w*each+i))
				if !c.ContainsHash(Hash(0, w*each+i)) || !c.ContainsHash(Hash(0, w*each+i/2)) {
					missing[w]++
				}
			}
		})
	}
	group.Go(func() {
		for range 20 {
			last := c.FillRatio()
			require.GreaterOrEqual(t, c.FillRatio(), last)
			_, err := c.WriteTo(io.Discard)
			require.NoError(t, err)
		}
	})
	group.Wait()
	require.Equal(t, make([]int, workers), missing)
	require.Equal(t, want.FillRatio(), c.FillRatio(), "a bit was lost")
	require.GreaterOrEqual(t, float64(c.Len()), 0.98*float64(want.Len()))
	require.LessOrEqual(t, float64(c.Len()), 1.02*float64(2*each*workers), "a key counts for each who adds it at once")
	KeepsPromise(t, c.ContainsHash, 200_000, 0.0103)
}

// Of goroutines that add the same keys at the same time, at least one hears of each key
// that it is new.
func TestBloomConcurrentAddNew(t *testing.T) {
	const keys = 5000
	c := bloomConcurrent.New(t, keys, 1e-9)
	heard := make([][keys]bool, 4)
	var group sync.WaitGroup
	for w := range heard {
		group.Go(func() {
			for i := range uint64(keys) {
				heard[w][i] = c.AddNewHash(Hash(1, i))
			}
		})
	}
	group.Wait()
	for i := range keys {
		require.True(t, heard[0][i] || heard[1][i] || heard[2][i] || heard[3][i], "key %d", i)
	}
	require.GreaterOrEqual(t, c.Len(), keys)
}
