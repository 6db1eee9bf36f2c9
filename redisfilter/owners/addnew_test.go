package owners

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// mostHidden is how many keys of a test false positives may make look old: 0.05 are expected at most.
const mostHidden = 2

// Of all that add a key at the same time, across changes of windows, one is told that it is new.
func TestOneAddIsNew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	clock := &manualClock{}
	wt := setsTest{
		addrs: []string{s.Addr}, keys: 50, rate: 4e-5, clock: clock, period: 30 * time.Second, keep: 4,
	}
	const workers, changes = 16, 3
	rounds := 400
	if !s.Real() {
		rounds = 100
	}
	clients := []*Sets{wt.open(t, 0), wt.open(t, -7*time.Hour)}
	winners, failed := make([]atomic.Int64, rounds), make([]atomic.Bool, rounds)
	var done atomic.Int64
	step := int64(rounds * workers * 2 / (changes * 10)) // operations in a tenth of a window
	var group sync.WaitGroup
	for _, w := range clients {
		for range workers {
			group.Go(func() {
				for i, key := range numbered("item", rounds) {
					fresh, err := w.Of("ada").AddNew(t.Context(), key)
					if err != nil {
						failed[i].Store(true)
					}
					if fresh {
						winners[i].Add(1)
					}
					if done.Add(1)%step == 0 {
						clock.advance(3 * time.Second)
					}
				}
			})
		}
	}
	group.Wait()
	uncertain, hidden := 0, 0
	for i := range rounds {
		n := winners[i].Load()
		require.LessOrEqual(t, n, int64(1), "round %d", i)
		switch {
		case n == 0 && failed[i].Load():
			uncertain++
		case n == 0:
			hidden++
		}
	}
	require.Less(t, uncertain, rounds/10)
	require.LessOrEqual(t, hidden, mostHidden)
}

// The same by the server's own clock.
func TestOneAddIsNewWhileTimePasses(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	s := redistest.Start(t)
	wt := setsTest{
		addrs: []string{s.Addr}, keys: 50, rate: 4e-5, period: minPeriod, keep: 4,
	}
	clients := []*Sets{wt.open(t, 0), wt.open(t, 5*time.Hour)}
	begun, hidden := time.Now(), 0
	for round := 0; time.Since(begun) < 3*minPeriod; round++ {
		var winners, failed atomic.Int64
		var group sync.WaitGroup
		for _, w := range clients {
			for range 16 {
				group.Go(func() {
					switch fresh, err := w.Of("ada").AddNew(t.Context(), fmt.Append(nil, round)); {
					case err != nil:
						failed.Add(1)
					case fresh:
						winners.Add(1)
					}
				})
			}
		}
		group.Wait()
		require.LessOrEqual(t, winners.Load(), int64(1), "round %d", round)
		if winners.Load()+failed.Load() == 0 {
			hidden++
		}
		time.Sleep(2 * time.Millisecond) // hundreds of rounds are as good as thousands
	}
	require.LessOrEqual(t, hidden, mostHidden)
}
