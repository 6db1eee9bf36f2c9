package term

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/meter"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
	"github.com/siftkv/siftkv/internal/golden"
)

// A service answers lookups of users 1 to 100 in a millisecond, and of others, if its filter
// is on, for one key in a hundred only after a query.
type service struct {
	counters *stats.Counters
	filter   bool
	asked    int
	missing  string // a path that is not found, though it is there
	slow     time.Duration
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond + s.slow)
	w := httptest.NewRecorder()
	id, _ := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, "/users/"), 10, 64)
	status := http.StatusNotFound
	switch {
	case id > 100:
		s.absent()
	case r.URL.Path != s.missing:
		status = http.StatusOK
		s.counters.Cache.Asked.Add(1)
		s.counters.Cache.Hits.Add(1)
	}
	s.counters.Request(status, time.Millisecond)
	w.WriteHeader(status)
	if status == http.StatusOK {
		_, _ = w.WriteString(`{"id":"` + strconv.FormatInt(id, 10) + `","name":"user"}`)
	}
	return w.Result(), nil
}

// absent counts a lookup of a key that does not exist.
func (s *service) absent() {
	s.asked++
	maybe := !s.filter || s.asked%100 == 0
	if s.filter {
		s.counters.Users.Answered(maybe, nil)
	}
	if maybe {
		s.counters.Cache.Asked.Add(1)
		s.counters.Cache.Misses.Add(1)
		s.counters.Database.Queries.Add(1)
		s.counters.Database.Empty.Add(1)
	}
}

// attack runs an attack of two seconds and a bit, twice, in a time of its own, on a service that was changed.
func attack(t *testing.T, change func(*service)) (out string, emptied int, s *service, err error) {
	synctest.Test(t, func(t *testing.T) {
		s = &service{counters: stats.New()}
		if change != nil {
			change(s)
		}
		var text bytes.Buffer
		err = Attack{
			Out: &text, Counters: s.counters.Snapshot, Filter: func(on bool) { s.filter = on },
			Load: load.Config{
				Base: "http://guard", Users: 100, For: 4200 * time.Millisecond, Workers: 1, Rate: 500, Seed: 7,
				Transport: s, EmptyCache: func(context.Context) error { emptied++; return nil },
			},
		}.Run(t.Context())
		out = text.String()
	})
	return out, emptied, s, err
}

func TestGoldenAttackWithAndWithoutTheFilter(t *testing.T) {
	out, emptied, s, err := attack(t, nil)
	require.NoError(t, err)
	require.True(t, s.filter)
	require.Equal(t, 2, emptied)
	golden.File(t, filepath.Join("testdata", "attack.golden"), out)
}

func TestGoldenAttackOnAServiceThatLies(t *testing.T) {
	out, _, s, err := attack(t, func(s *service) { s.missing = "/users/1" })
	require.ErrorIs(t, err, load.ErrWrong)
	require.True(t, s.filter)
	golden.File(t, filepath.Join("testdata", "wrong.golden"), out)
}

func TestGoldenAttackOnASlowService(t *testing.T) {
	out, _, _, err := attack(t, func(s *service) { s.slow = 300 * time.Millisecond })
	require.NoError(t, err)
	golden.File(t, filepath.Join("testdata", "slow.golden"), out)
}

func TestAnAttackThatIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &service{counters: stats.New()}
		var text bytes.Buffer
		require.NoError(t, Attack{
			Out: &text, Counters: s.counters.Snapshot, Filter: func(on bool) { s.filter = on },
			Load: load.Config{Base: "http://guard", Users: 100, For: time.Hour, Workers: 1, Rate: 10, Transport: s},
		}.Run(ctx))
		require.True(t, s.filter)
		require.NotContains(t, text.String(), "guarded", "there is nothing to compare")
	})
}

// TestGoldenTableOnATerminal shows two samples on a terminal: the second takes the place of the first.
func TestGoldenTableOnATerminal(t *testing.T) {
	half := 12.25
	now := meter.Sample{
		Number: 1, Seconds: 1, P50: 210, P99: 1_340, PerTenThousand: &half,
		PerSecond: meter.Figures{
			Requests: 2010, Users: 210, Absent: 1800, Filter: 4020, FilterNo: 3790, Cache: 230, CacheHits: 200,
			Queries: 30, Empty: 2, Inserts: 1,
		},
		Total: meter.Figures{
			Requests: 24_120, Users: 2_520, Absent: 21_600, Filter: 48_240, FilterNo: 45_480, Cache: 2_760,
			CacheHits: 2_400, Queries: 360, Empty: 26, Inserts: 12, Shed: 3, Failed: 3,
		},
	}
	var out bytes.Buffer
	s := &screen{out: &out, live: true, color: true}
	s.sample("normal", now, 12*time.Second)
	now.Total.Wrong, now.PerTenThousand = 1, nil
	s.sample("normal", now, 13*time.Second)
	golden.File(t, filepath.Join("testdata", "live.golden"), strings.ReplaceAll(out.String(), "\x1b", "^"))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(strings.ReplaceAll(line, "\x1b[1;31m", ""))), 80, line)
	}
}

// TestTheLastTableOnATerminal holds the averages of a load, and not what its last moment was like.
func TestTheLastTableOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &service{counters: stats.New(), filter: true}
		var out bytes.Buffer
		s := &screen{out: &out, live: true}
		report, last, err := s.play(t.Context(), "cold", meter.New(service.counters.Snapshot), load.Config{
			Base: "http://guard", Scenario: load.Cold, Users: 100, For: 2100 * time.Millisecond, Workers: 1,
			Rate: 500, Transport: service,
		})
		require.NoError(t, err)
		require.Equal(t, uint64(1050), report.Everyone.Requests)
		require.InDelta(t, 500, last.PerSecond.Cache, 1)
		pictures := strings.Split(out.String(), "\x1b[J")
		require.Len(t, pictures, 3, "two seconds, and the end")
		require.Regexp(t, `users +500 +1,050 +p50 1.02 ms`, pictures[2])
		require.Regexp(t, `lookups +1,050 +500`, pictures[2], "the summary follows")
	})
}

func TestShowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		counters := stats.New()
		var out bytes.Buffer
		Show(ctx, &out, "a service", meter.New(counters.Snapshot), time.Second)
		require.Equal(t, 3, strings.Count(out.String(), "\n"), out.String())
		require.Contains(t, out.String(), "a service\n")
	})
}

func TestTimes(t *testing.T) {
	for us, want := range map[int64]string{
		0: "0.00 ms", 210: "0.21 ms", 9_999: "10.00 ms", 10_000: "10 ms", 999_999: "999 ms", 1_500_000: "1.5 s",
		60_000_000: "60 s",
	} {
		require.Equal(t, want, wait(us))
	}
}
