package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// nothing is a store for tests that do not ask it.
type nothing struct{ engine.Live }

func (nothing) Set(_, _ []byte) error { return nil }

func (nothing) NewReader(engine.Access, engine.Kind) (engine.Reader, error) { return nil, nil }

// TestMedianInterval has the probabilities of Student's sign test: with five values
// the range holds the median with 94 %, the second from both ends of eight with 93 %.
func TestMedianInterval(t *testing.T) {
	for _, c := range []struct {
		xs                []float64
		median, low, high float64
	}{
		{[]float64{3}, 3, 3, 3},
		{[]float64{5, 1}, 3, 1, 5},
		{[]float64{5, 1, 2, 9, 3}, 3, 1, 9},
		{[]float64{8, 7, 6, 5, 4, 3, 2, 1}, 4.5, 2, 7},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 7, 4, 10},
	} {
		median, low, high := medianInterval(c.xs)
		require.Equal(t, []float64{c.median, c.low, c.high}, []float64{median, low, high}, c.xs)
	}
}

// series has one sample per rate, all of a second of processor time.
func series(name string, rates ...float64) Series {
	s := Series{Engine: name}
	for _, r := range rates {
		s.Samples = append(s.Samples, Sample{Operations: int64(r), Seconds: 1, PerSecond: r, CPUSeconds: 1, Allocs: 2})
	}
	return s
}

func TestRatiosAreOfRepetitions(t *testing.T) {
	p := PhaseResult{Engines: []Series{series("siftkv", 100, 10, 40), series("pebble", 50, 5, 10),
		series("bbolt", 100)}}
	p.finish()
	require.Equal(t, []Ratio{
		{Engine: "pebble", Median: 2, Low: 2, High: 4, Repetitions: 3},
		{Engine: "bbolt", Median: 1, Low: 1, High: 1, Repetitions: 1},
	}, p.Ratios)
	require.Equal(t, p.Ratios, p.CPURatios)
	require.InDelta(t, 40, p.Engines[0].PerSecond, 0)
}

func TestAScanSeesWhatIsWrong(t *testing.T) {
	u := testKeyspace(t, 100)
	w := &worker{keyspace: u, start: &startTask{ValueSize: 100}}
	entry := func(rank int) (key, value []byte) {
		key = u.source.AppendInOrder(nil, rank)
		return key, u.loaded.Append(nil, key)
	}
	for name, ranks := range map[string][]int{"disorder": {3, 5, 4}, "twice": {3, 3}, "good": {3, 4, 5}} {
		s := newScans(w, 10, 0)
		for _, rank := range ranks {
			s.visit(entry(rank))
		}
		require.Equal(t, name != "good", s.disorder, name)
	}
	s := newScans(w, 10, 0)
	key, _ := entry(1)
	s.visit(key, []byte("too short"))
	require.True(t, s.disorder)
}
