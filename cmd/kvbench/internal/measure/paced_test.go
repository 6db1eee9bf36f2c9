package measure

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// told is a reader that notes when it was asked, and what for.
type told struct {
	engine.Reader
	at   *[]time.Time
	kind engine.Kind
	all  *[]engine.Kind
	stop time.Duration // how long each lookup takes at least
}

func (r told) Get(dst, key []byte) ([]byte, bool, error) {
	*r.at, *r.all = append(*r.at, time.Now()), append(*r.all, r.kind)
	for start := time.Now(); time.Since(start) < r.stop; {
		// It takes its time.
	}
	return r.Reader.Get(dst, key)
}

// paced makes lanes of lookups that are due at the given microseconds.
func paced(t *testing.T, existing, absent []int, stop time.Duration) (lanes []Lane, at *[]time.Time,
	kinds *[]engine.Kind) {
	t.Helper()
	src, v := fixture(t)
	at, kinds = new([]time.Time), new([]engine.Kind)
	for i, micros := range [][]int{existing, absent} {
		kind := engine.Kinds[i]
		r, err := engine.NewNull(v).NewReader(engine.Get, kind)
		require.NoError(t, err)
		l := Lane{
			Reader: told{r, at, kind, kinds, stop}, Stream: NewStream(src, v, kind, 5, 0, len(micros)),
			Latency: NewHistogram(), Service: NewHistogram(),
		}
		for _, us := range micros {
			l.Due = append(l.Due, time.Duration(us)*time.Microsecond)
		}
		lanes = append(lanes, l)
	}
	return lanes, at, kinds
}

func TestPacedLookupsBeginWhenTheyAreDue(t *testing.T) {
	lanes, at, kinds := paced(t, []int{0, 900, 2000}, []int{300, 2000, 2500}, 0)
	start := time.Now()
	_, err := Paced(t.Context(), start, lanes)
	require.NoError(t, err)
	e, a := engine.Existing, engine.Absent
	require.Equal(t, []engine.Kind{e, a, e, e, a, a}, *kinds, "in the order in which they are due")
	for i, us := range []int{0, 300, 900, 2000, 2000, 2500} {
		require.GreaterOrEqual(t, (*at)[i].Sub(start), time.Duration(us)*time.Microsecond, "none is early")
	}
	for _, l := range lanes {
		require.EqualValues(t, 3, l.Latency.TotalCount())
		require.EqualValues(t, 3, l.Service.TotalCount())
	}
}

func TestALookupThatWaitsForASlowOneIsLate(t *testing.T) {
	const stop = time.Millisecond
	lanes, _, _ := paced(t, []int{0, 0, 0, 0, 0}, nil, stop)
	latest, err := Paced(t.Context(), time.Now(), lanes)
	require.NoError(t, err)
	require.GreaterOrEqual(t, latest, 4*stop)
	h := lanes[0].Latency
	require.GreaterOrEqual(t, h.Max(), int64(5*stop), "the last has waited for four")
	require.GreaterOrEqual(t, h.ValueAtPercentile(50), int64(3*stop)-h.ValueAtPercentile(50)/1000)
	require.GreaterOrEqual(t, lanes[0].Service.Min(), int64(stop)-int64(stop)/500)
}

func TestPacedChecksAnswersAndStops(t *testing.T) {
	lanes, _, _ := paced(t, []int{0, 10}, []int{5}, 0)
	lanes[0].Reader, lanes[1].Reader = lanes[1].Reader, lanes[0].Reader
	_, err := Paced(t.Context(), time.Now(), lanes)
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
	lanes, _, kinds := paced(t, []int{0, 3_600_000_000}, nil, 0)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() {
		_, err := Paced(ctx, time.Now(), lanes)
		stopped <- err
	}()
	cancel()
	require.ErrorIs(t, <-stopped, context.Canceled)
	require.LessOrEqual(t, len(*kinds), 1)
}
