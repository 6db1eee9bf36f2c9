package meter

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

func TestSamplesOfCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := stats.New()
		counters.Database.Queries.Add(1000) // long ago
		m := New(counters.Snapshot)
		counters.Users.Answered(false, nil)
		counters.Names.Answered(true, nil)
		counters.Cache.Asked.Add(40)
		counters.Cache.Hits.Add(20)
		counters.Cache.NullHits.Add(10)
		counters.Database.Queries.Add(10)
		counters.Request(200, 3*time.Millisecond)
		time.Sleep(2 * time.Second)
		s := m.Take()
		require.Equal(t, uint64(1), s.Number)
		require.Equal(t, 2.0, s.Seconds)
		require.Equal(t, Figures{
			Requests: 0.5, Filter: 1, FilterNo: 0.5, Cache: 20, CacheHits: 15, Queries: 5,
		}, s.PerSecond)
		require.Equal(t, Figures{Requests: 1, Filter: 2, FilterNo: 1, Cache: 40, CacheHits: 30, Queries: 1010}, s.Total)
		require.InEpsilon(t, 3000, s.P50, 0.07)
		require.Nil(t, s.PerTenThousand, "no load sends keys that do not exist")

		time.Sleep(time.Second)
		s = m.Take()
		require.Equal(t, Figures{}, s.PerSecond)
		require.Equal(t, 1010.0, s.Total.Queries)
		require.Zero(t, s.P99)
		require.Equal(t, Figures{}, m.Take().PerSecond, "no time has gone by")
	})
}

// A sample that is held up while it is taken is followed by one at once. Neither shows more than there was.
func TestSamplesOfABusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := stats.New()
		held := func(d time.Duration) { // 100 requests a second
			for range d / (10 * time.Millisecond) {
				time.Sleep(10 * time.Millisecond)
				counters.Request(http.StatusOK, time.Millisecond)
			}
		}
		late := false
		m := New(func() stats.Snapshot {
			begun := time.Now()
			if late {
				held(490 * time.Millisecond)
			}
			s := counters.Snapshot()
			s.Time = begun
			return s
		})
		held(500 * time.Millisecond)
		require.InDelta(t, 100, m.Take().PerSecond.Requests, 1e-9)
		for range 3 {
			late = !late
			held(10 * time.Millisecond)
			rate := m.Take().PerSecond.Requests
			require.LessOrEqual(t, rate, 100.0)
			require.Positive(t, rate)
		}
	})
}

// transport answers requests without a network.
type transport struct{ http.Handler }

func (h transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestSamplesOfALoad runs an attack against a service where one key in ten gets to the
// database.
func TestSamplesOfALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := stats.New()
		counters.Database.Empty.Add(77) // before
		m := New(counters.Snapshot)
		n := 0
		l, err := load.New(load.Config{
			Base: "http://guard", Scenario: load.Attack, Users: 10, Rate: 100, Attackers: 1, Workers: 1,
			For: 10 * time.Second,
			Transport: transport{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if n++; n%10 == 0 {
					counters.Database.Empty.Add(1)
				}
				counters.Request(http.StatusNotFound, time.Millisecond)
				w.WriteHeader(http.StatusNotFound)
			})},
		})
		require.NoError(t, err)
		require.Equal(t, load.Scenario(""), m.Report().Scenario)
		m.Play(l)
		go func() { _, _ = l.Run(t.Context()) }()
		time.Sleep(5 * time.Millisecond) // between two visitors, ten milliseconds apart
		time.Sleep(2 * time.Second)
		m.Take()
		time.Sleep(500 * time.Millisecond)
		s := m.Take()
		require.Equal(t, 0.5, s.Seconds)
		require.InDelta(t, 100, s.PerSecond.Absent, 1e-9)
		require.InDelta(t, 100, s.PerSecond.Requests, 1e-9)
		require.Zero(t, s.PerSecond.Users)
		require.InDelta(t, 1000, *s.PerTenThousand, 5)
		time.Sleep(10 * time.Second)
		m.Take()
		time.Sleep(time.Second)
		last := m.Take()
		require.Equal(t, uint64(4), last.Number)
		require.InDelta(t, 1000, *last.PerTenThousand, 1, "what was before does not count")
		require.Equal(t, 1000.0, last.Total.Absent)
		require.Equal(t, uint64(1000), m.Report().Everyone.Requests)
	})
}
