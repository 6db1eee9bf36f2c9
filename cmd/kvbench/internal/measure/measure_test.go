package measure

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

func fixture(t *testing.T) (keys.Source, keys.Values) {
	t.Helper()
	src, err := keys.NewGenerated(3000, 16, 1)
	require.NoError(t, err)
	v, err := keys.NewValues(100, 1)
	require.NoError(t, err)
	return src, v
}

func TestStreamsOfOneSeedShareNoKeyUntilTheyWrap(t *testing.T) {
	src, v := fixture(t)
	seen := map[string]bool{}
	for rep := range 3 {
		s := NewStream(src, v, engine.Existing, 5, rep*1000, 1000)
		require.Equal(t, 1000, s.Len())
		for i := range s.Len() {
			require.False(t, seen[string(s.Key(i))])
			seen[string(s.Key(i))] = true
		}
	}
	again := NewStream(src, v, engine.Existing, 5, 3000, 1000)
	first := NewStream(src, v, engine.Existing, 5, 0, 1000)
	require.Equal(t, first.keys, again.keys, "position 3000 of 3000 is position 0")
	other := NewStream(src, v, engine.Existing, 6, 0, 1000)
	require.NotEqual(t, first.keys, other.keys)
}

func TestStreamAsksForItsKind(t *testing.T) {
	src, v := fixture(t)
	present := map[string]bool{}
	for i := range src.Present() {
		present[string(src.AppendPresent(nil, i))] = true
	}
	for _, kind := range engine.Kinds {
		s := NewStream(src, v, kind, 5, 0, 5000)
		require.Equal(t, kind, s.Kind())
		for i := range s.Len() {
			require.Equal(t, kind == engine.Existing, present[string(s.Key(i))])
		}
	}
}

// oneLong is a source with a key that is much longer than the others.
type oneLong struct{ keys.Source }

func (o oneLong) AppendPresent(dst []byte, i int) []byte {
	if i == 0 {
		return append(dst, make([]byte, 1<<16)...)
	}
	return o.Source.AppendPresent(dst, i)
}

func (o oneLong) Describe() keys.Description {
	d := o.Source.Describe()
	d.MaxLen, d.MeanLen = 1<<16, d.MeanLen+float64(1<<16)/float64(d.Present)
	return d
}

func TestALongKeyTakesTheRoomOfOne(t *testing.T) {
	src, v := fixture(t)
	s := NewStream(oneLong{src}, v, engine.Existing, 5, 0, 3000)
	require.Len(t, s.keys, 2999*16+(1<<16))
	require.Less(t, cap(s.keys), 2*len(s.keys))
}

// liar answers like null but for one lookup.
type liar struct {
	engine.Reader
	at   int
	lie  func(value []byte, found bool) ([]byte, bool, error)
	seen int
}

func (l *liar) Get(dst, key []byte) ([]byte, bool, error) {
	value, found, err := l.Reader.Get(dst, key)
	if l.seen++; l.seen == l.at {
		return l.lie(value, found)
	}
	return value, found, err
}

func TestEveryAnswerIsChecked(t *testing.T) {
	src, v := fixture(t)
	broken := errors.New("broken")
	for _, tc := range []struct {
		name string
		kind engine.Kind
		lie  func([]byte, bool) ([]byte, bool, error)
		want string
	}{
		{"lost", engine.Existing, func(b []byte, _ bool) ([]byte, bool, error) { return b[:0], false, nil },
			"not found"},
		{"short", engine.Existing, func(b []byte, _ bool) ([]byte, bool, error) { return b[:99], true, nil },
			"a value of 99 bytes, not 100"},
		{"other", engine.Existing, func([]byte, bool) ([]byte, bool, error) {
			return v.Append(nil, []byte("other")),
				true, nil
		}, "the value of another key"},
		{"ghost", engine.Absent, func(b []byte, _ bool) ([]byte, bool, error) { return append(b, 'x'), true, nil },
			"found, with a value of 1 bytes"},
		{"error", engine.Absent, func(b []byte, _ bool) ([]byte, bool, error) { return b, false, broken }, "broken"},
	} {
		s := NewStream(src, v, tc.kind, 5, 0, 2500)
		for _, at := range []int{1, 1024, 1025, 2500} {
			reader, err := engine.NewNull(v).NewReader(engine.Get, tc.kind)
			require.NoError(t, err)
			_, thrErr := Throughput(t.Context(), &liar{Reader: reader, at: at, lie: tc.lie}, s)
			latErr := Latency(t.Context(), &liar{Reader: reader, at: at, lie: tc.lie}, s, NewHistogram())
			for _, err := range []error{thrErr, latErr} {
				require.ErrorContains(t, err, tc.want, tc.name)
				require.Equal(t, tc.name != "error", errors.Is(err, bench.ErrWrongAnswer))
				if wrong, ok := errors.AsType[*WrongAnswer](err); ok {
					require.Equal(t, s.Key(at-1), wrong.Key)
				}
			}
		}
	}
}

func TestLatencyChecksEveryByte(t *testing.T) {
	src, v := fixture(t)
	s := NewStream(src, v, engine.Existing, 5, 0, 10)
	reader, err := engine.NewNull(v).NewReader(engine.Get, engine.Existing)
	require.NoError(t, err)
	flip := func(b []byte, _ bool) ([]byte, bool, error) {
		b = bytes.Clone(b)
		b[99] ^= 1
		return b, true, nil
	}
	require.ErrorIs(t, Latency(t.Context(), &liar{Reader: reader, at: 3, lie: flip}, s, NewHistogram()),
		bench.ErrWrongAnswer)
}

func TestLoopsMeasureAndStop(t *testing.T) {
	src, v := fixture(t)
	for _, kind := range engine.Kinds {
		s := NewStream(src, v, kind, 5, 0, 2000)
		reader, err := engine.NewNull(v).NewReader(engine.Get, kind)
		require.NoError(t, err)
		took, err := Throughput(t.Context(), reader, s)
		require.NoError(t, err)
		require.Positive(t, took)
		h := NewHistogram()
		require.NoError(t, Latency(t.Context(), reader, s, h))
		require.EqualValues(t, 2000, h.TotalCount())

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = Throughput(ctx, reader, s)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, Latency(ctx, reader, s, h), context.Canceled)
	}
}

func TestWilsonAgainstKnownIntervals(t *testing.T) {
	// Worked values from R. G. Newcombe, "Two-sided confidence intervals for the
	// single proportion", Statistics in Medicine 17, 1998, table I, method 3.
	for _, tc := range []struct{ hits, n, low, high float64 }{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0, 0.1611},
		{1, 29, 0.0061, 0.1718},
	} {
		low, high := Wilson(tc.hits/tc.n, tc.n)
		require.InDelta(t, tc.low, low, 5e-5)
		require.InDelta(t, tc.high, high, 5e-5)
	}
	low, high := Wilson(0.5, 0)
	require.Equal(t, []float64{0, 1}, []float64{low, high})
}

func TestMedian(t *testing.T) {
	require.InDelta(t, 2, Median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, Median([]float64{4, 1, 2, 3}), 0)
	require.True(t, math.IsNaN(Median(nil)))
	xs := []float64{3, 1, 2}
	Median(xs)
	require.Equal(t, []float64{3, 1, 2}, xs, "the argument is left as it is")
}

func TestTimerCostIsPlausible(t *testing.T) {
	require.Less(t, TimerCost().Milliseconds(), int64(1))
}

func BenchmarkThroughputNull(b *testing.B) {
	src, _ := keys.NewGenerated(100_000, 16, 1)
	v, _ := keys.NewValues(100, 1)
	for _, kind := range engine.Kinds {
		b.Run(string(kind), func(b *testing.B) {
			s := NewStream(src, v, kind, 1, 0, 50_000)
			reader, _ := engine.NewNull(v).NewReader(engine.Get, kind)
			for b.Loop() {
				if _, err := Throughput(b.Context(), reader, s); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*s.Len()), "ns/lookup")
		})
	}
}

func TestSummaryTakesMediansAndSums(t *testing.T) {
	tally := engine.Tally{Negatives: 990, FalsePositives: 10}
	rep := func(nanos int64) Repetition {
		return Repetition{Lookups: 1000, Nanos: nanos, Counters: engine.Counters{Lookups: 1000, Total: tally}}
	}
	h := NewHistogram()
	for i := range 1000 {
		require.NoError(t, h.RecordValue(int64(i+1)))
	}
	p := Summarise([]Repetition{rep(3e6), rep(1e6), rep(9e6)}, h, 0.5)
	require.InDelta(t, 3000, p.NsPerLookup, 1e-9)
	require.Equal(t, 3000, p.Lookups)
	require.Equal(t, engine.Count(3000), p.Counters.Lookups)
	require.Equal(t, engine.Count(30), p.Counters.Total.FalsePositives)
	require.InDelta(t, 500, p.Latency.P50, 1)
	require.InDelta(t, 990, p.Latency.P99, 1)
	require.InDelta(t, 0.01, p.FPR.Value, 1e-12)
	require.EqualValues(t, 3000, p.FPR.Trials)
	require.EqualValues(t, 1500, p.FPR.Distinct)
	low, high := Wilson(0.01, 1500)
	require.InDelta(t, low, p.FPR.Low, 0)
	require.InDelta(t, high, p.FPR.High, 0)
}
