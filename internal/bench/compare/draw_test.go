package compare

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func testUniverse(t *testing.T, n int) *universe {
	t.Helper()
	u, err := newUniverse(&startTask{Keys: n, KeySize: 16, ValueSize: 100, Seed: 7})
	require.NoError(t, err)
	return u
}

func TestRecordsAndAbsentKeysAreDifferentKeys(t *testing.T) {
	u := testUniverse(t, 1000)
	records := map[string]bool{}
	for i := range u.n + u.spare() {
		records[string(u.appendRecord(nil, i))] = true
	}
	require.Len(t, records, u.n+u.spare(), "no record twice")
	draw, c := u.absentKeys(3), newChunk(u)
	draw(c)
	asked := map[string]bool{}
	for i := range c.len() {
		require.False(t, records[string(c.key(i))])
		asked[string(c.key(i))] = true
	}
	require.Len(t, asked, u.absent(), "all are asked for before one comes again")
}

func TestDrawingsKnowTheirValues(t *testing.T) {
	u := testUniverse(t, 1000)
	for name, draw := range map[string]drawing{
		"existing": u.existing(existingOrder, 1), "zipfian": u.zipfian(newZipf(u.n), 1), "in order": u.inOrder(3),
	} {
		c := newChunk(u)
		draw(c)
		require.Positive(t, c.len())
		for i := range c.len() {
			require.True(t, u.loaded.HasWord(u.appendValue(nil, c.key(i), false), c.words[i]), name)
		}
	}
	c := newChunk(u)
	draw := u.inOrder(3)
	draw(c)
	require.Equal(t, 334, c.len())
	for i := 1; i < c.len(); i++ {
		require.Less(t, position(c.key(i-1)), position(c.key(i)))
	}
	c.reset()
	draw(c)
	require.Zero(t, c.len(), "at the end there is nothing more")
}

func TestZetaIsTheSum(t *testing.T) {
	for _, n := range []int{1, 2, 999, 1000, 1001, 5000, 200_000} {
		sum := 0.0
		for i := 1; i <= n; i++ {
			sum += math.Pow(float64(i), -theta)
		}
		require.InDelta(t, sum, zeta(n), 1e-9, n)
	}
}

// TestZipfFollowsTheLaw holds the most popular ranks, which the method of Gray et al.
// draws exactly, and the whole upper half against their probabilities, within five
// standard deviations.
func TestZipfFollowsTheLaw(t *testing.T) {
	const n, draws = 10_000, 400_000
	z, r := newZipf(n), newRandom(1, 1)
	var first, second, upper float64
	for range draws {
		switch rank := z.draw(r.float()); {
		case rank < 0 || rank >= n:
			t.Fatalf("rank %d", rank)
		case rank == 0:
			first++
		case rank == 1:
			second++
		case rank >= n/2:
			upper++
		}
	}
	within := func(p, got float64) {
		t.Helper()
		require.InDelta(t, p*draws, got, 5*math.Sqrt(draws*p*(1-p)))
	}
	within(1/zeta(n), first)
	within(math.Pow(2, -theta)/zeta(n), second)
	p := 1 - zeta(n/2)/zeta(n)
	require.InEpsilon(t, p, upper/draws, 0.05, "an approximation further down")
}

func TestPassesOfRandomNumbersDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for pass := range uint64(100) {
		r := newRandom(1, pass)
		for range 10 {
			seen[r.next()] = true
			require.Less(t, r.below(7), 7)
		}
	}
	require.Greater(t, len(seen), 995)
}

func TestMixesOfYCSB(t *testing.T) {
	u := testUniverse(t, 100_000)
	for name, want := range map[string]map[verb]float64{
		"ycsb-a": {read: 0.5, update: 0.5},
		"ycsb-b": {read: 0.95, update: 0.05},
		"ycsb-c": {read: 1},
		"ycsb-d": {read: 0.95, insert: 0.05},
		"ycsb-e": {scan: 0.95, insert: 0.05},
		"ycsb-f": {read: 0.5, modify: 0.5},
	} {
		w := &worker{universe: u, start: &startTask{ValueSize: 100}, popular: newZipf(u.n), written: u.n, store: nothing{}}
		y, err := newYCSB(w, name, 1)
		require.NoError(t, err)
		got := map[verb]float64{}
		const chunks = 100
		for range chunks {
			require.NoError(t, y.draw())
			for _, o := range y.operations {
				got[o.verb]++
				if o.verb == scan {
					require.LessOrEqual(t, o.limit, maxScan)
					require.Positive(t, o.limit)
				}
			}
		}
		const n = chunks * ycsbChunk
		for v, share := range want {
			require.InDelta(t, share*n, got[v], 5*math.Sqrt(n*share*(1-share))+0.5, "%s verb %d", name, v)
			delete(got, v)
		}
		require.Empty(t, got, name)
		require.Equal(t, name == "ycsb-d" || name == "ycsb-e", w.written > u.n)
	}
}

func TestInsertsRunOut(t *testing.T) {
	u := testUniverse(t, 1000)
	w := &worker{universe: u, start: &startTask{ValueSize: 100}, popular: newZipf(u.n), written: u.n + u.spare(), store: nothing{}}
	y, err := newYCSB(w, "ycsb-d", 1)
	require.NoError(t, err)
	for err == nil {
		err = y.draw()
	}
	require.ErrorContains(t, err, "ask for more keys")
}
