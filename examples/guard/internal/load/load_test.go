package load

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// play runs a scenario of ten seconds and 100 visitors a second against a server, in a time
// of its own.
func play(t *testing.T, s *server, change func(*Config)) (report Report, err error) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{
			Base: "http://guard", Scenario: Normal, Users: int(s.users), For: 10 * time.Second, Rate: 100,
			Seed: 1, Transport: s,
		}
		if change != nil {
			change(&c)
		}
		report, err = Run(t.Context(), c)
	})
	return report, err
}

func TestScenariosAreTrueOfAServerThatTellsTheTruth(t *testing.T) {
	kinds := map[Scenario][]Kind{Attack: {Absent, Lookups}, Cold: {Lookups}, Normal: Kinds}
	for _, scenario := range Scenarios {
		t.Run(string(scenario), func(t *testing.T) {
			emptied := 0
			r, err := play(t, newServer(1000), func(c *Config) {
				c.Scenario = scenario
				c.EmptyCache = func(context.Context) error { emptied++; return nil }
			})
			require.NoError(t, err)
			require.Equal(t, scenario == Cold, emptied == 1, "the cache is emptied before one scenario")
			require.Zero(t, r.Everyone.Wrong, "%v", r.Mistakes)
			require.Zero(t, r.Everyone.Failed, "%v", r.Mistakes)
			require.Zero(t, r.Late)
			require.InDelta(t, 10, r.Seconds, 0.02)
			require.GreaterOrEqual(t, r.Everyone.Requests, uint64(1000))
			require.Len(t, r.Kinds, len(kinds[scenario]))
			sum := uint64(0)
			for _, kind := range kinds[scenario] {
				require.NotZero(t, r.Kinds[kind].Requests, kind)
				sum += r.Kinds[kind].Requests
			}
			require.Equal(t, sum, r.Everyone.Requests)
			require.Equal(t, sum-r.Kinds[Absent].Requests, r.Users.Requests)
		})
	}
}

// TestAnAttackAsksForOtherKeysEachTime also holds the share of attackers against a binomial
// bound of six deviations.
func TestAnAttackAsksForOtherKeysEachTime(t *testing.T) {
	s := newServer(1000)
	r, err := play(t, s, func(c *Config) { c.Scenario, c.Rate, c.Attackers = Attack, 2000, 0.7 })
	require.NoError(t, err)
	absent := map[string]bool{}
	for _, path := range s.asked {
		id, err := strconv.ParseInt(strings.TrimPrefix(path, "GET /users/"), 10, 64)
		require.NoError(t, err)
		if id > s.users {
			require.Less(t, id, int64(1)<<53, "JSON keeps it")
			require.False(t, absent[path], path)
			absent[path] = true
		}
	}
	require.Len(t, absent, int(r.Kinds[Absent].Requests))
	require.InDelta(t, 14_000, len(absent), 6*65)
}

func TestASeedSendsTheSameRequestsWhateverTheWorkers(t *testing.T) {
	sent := func(seed uint64, workers int) []string {
		s := newServer(1000)
		_, err := play(t, s, func(c *Config) { c.Seed, c.Workers, c.For = seed, workers, 3*time.Second })
		require.NoError(t, err)
		for i, path := range s.asked { // users get their numbers in the order in which they come
			id, err := strconv.Atoi(path[strings.LastIndexByte(path, '/')+1:])
			if err == nil && id > 1000 && id < 1<<50 {
				s.asked[i] = "of a new user"
			}
		}
		slices.Sort(s.asked)
		return s.asked
	}
	one := sent(1, 1)
	require.Greater(t, len(one), 300)
	require.Equal(t, one, sent(1, 17))
	require.NotEqual(t, one, sent(2, 1))
}

// TestLatencyCountsTheWait stalls a server for one second. All who came meanwhile waited,
// not only the one whose request was stalled.
func TestLatencyCountsTheWait(t *testing.T) {
	stalled := false
	s := newServer(1000)
	s.lie = func(http.ResponseWriter, *http.Request) bool {
		if !stalled {
			stalled = true
			time.Sleep(time.Second)
		}
		return false
	}
	r, err := play(t, s, func(c *Config) { c.Scenario, c.Workers = Cold, 1 })
	require.NoError(t, err)
	require.Equal(t, uint64(1000), r.Everyone.Requests)
	waited := 0
	for us, n := range r.Everyone.Latency.Bars {
		if us >= 500_000 {
			waited += int(n)
		}
	}
	require.InDelta(t, 50, waited, 5, "half of the hundred who came in that second waited for half of it or more")
}

func TestVisitorsWhoseTurnNeverComesAreCounted(t *testing.T) {
	s := newServer(1000)
	s.lie = func(http.ResponseWriter, *http.Request) bool { time.Sleep(time.Second); return false }
	r, err := play(t, s, func(c *Config) { c.Scenario, c.Workers = Cold, 2 })
	require.NoError(t, err)
	require.Equal(t, uint64(20), r.Everyone.Requests)
	require.Equal(t, uint64(980), r.Late)
}

func TestUnpacedWorkersSendAsFastAsTheyCan(t *testing.T) {
	s := newServer(1000)
	s.lie = func(http.ResponseWriter, *http.Request) bool { time.Sleep(10 * time.Millisecond); return false }
	r, err := play(t, s, func(c *Config) { c.Scenario, c.Workers, c.Unpaced = Cold, 4, true })
	require.NoError(t, err)
	require.Equal(t, uint64(4*1000), r.Everyone.Requests)
	require.InDelta(t, 10_000, r.Everyone.Latency.P99, 700, "microseconds")
	require.InDelta(t, 400, r.PerSecond(), 1)
}

// lies are what a server may say that is not true, and which kind of request finds it.
var lies = []struct {
	name     string
	scenario Scenario
	kind     Kind
	lie      func(w http.ResponseWriter, r *http.Request) bool
}{
	{"a user is not found", Attack, Lookups, answers("/users/1", 404, `{"error":"no such user"}`)},
	{"another user is found", Cold, Lookups, answers("/users/1", 200, `{"id":"2","name":"user2"}`)},
	{"a user without a name", Cold, Lookups, answers("/users/1", 200, `{"id":"1"}`)},
	{"a user that is no JSON", Cold, Lookups, answers("/users/1", 200, `<html>`)},
	{"nobody is found", Attack, Absent, func(w http.ResponseWriter, r *http.Request) bool {
		found := len(r.URL.Path) > len("/users/1000")
		if found {
			say(w, 200, `{"id":"1","name":"user1"}`)
		}
		return found
	}},
	{"all names are free", Normal, Names, answers("/names/", 200, `{"taken":false}`)},
	{"all names are taken", Normal, Names, answers("/names/", 200, `{"taken":true}`)},
	{"nothing is said of names", Normal, Names, answers("/names/", 200, `{}`)},
	{"a sign-up makes another user", Normal, SignUps, answers("POST /users", 201, `{"id":"5","name":"eve"}`)},
	{"a sign-up is refused", Normal, SignUps, answers("POST /users", 409, `{"error":"taken"}`)},
	{"a feed that is no JSON", Normal, Feeds, answers("/feed/", 200, `<html>`)},
	{"a ban is not kept", Normal, BlackList, answers("/banned/", 200, `{"banned":false}`)},
	{"a ban is not lifted", Normal, Lookups, answers("DELETE /banned/", 204, ``)},
}

// answers says the same to requests of a kind, instead of the truth.
func answers(to string, status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		asked := strings.Contains(r.Method+" "+r.URL.Path, to)
		if to == "/users/1" {
			asked = r.URL.Path == to
		}
		if asked {
			say(w, status, "%s", body)
		}
		return asked
	}
}

func TestLiesAreFound(t *testing.T) {
	for _, l := range lies {
		t.Run(l.name, func(t *testing.T) {
			s := newServer(1000)
			s.lie = l.lie
			r, err := play(t, s, func(c *Config) { c.Scenario = l.scenario })
			require.ErrorIs(t, err, ErrWrong)
			require.NotZero(t, r.Kinds[l.kind].Wrong, "%v", r.Mistakes)
			require.GreaterOrEqual(t, r.Everyone.Wrong, r.Kinds[l.kind].Wrong)
			require.NotEmpty(t, r.Mistakes)
			require.ErrorContains(t, err, r.Mistakes[0])
		})
	}
}

func TestAFeedThatRepeatsItself(t *testing.T) {
	s := newServer(1000)
	s.lie = answers("/feed/", 200, `{"items":[1,2]}`)
	r, err := play(t, s, nil)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Repeated, r.Kinds[Feeds].Requests/2, "each second page, and more")
	require.Less(t, r.Repeated, r.Kinds[Feeds].Requests)
	r, err = play(t, newServer(1000), nil)
	require.NoError(t, err)
	require.Zero(t, r.Repeated)
}

func TestAServiceThatSaysNotNowDoesNotLie(t *testing.T) {
	s := newServer(1000)
	s.lie = answers("/users/1", 503, `{"error":"overloaded"}`)
	r, err := play(t, s, nil)
	require.NoError(t, err)
	require.NotZero(t, r.Everyone.Failed)
	require.Equal(t, r.Everyone.Failed, r.Everyone.Status[503])
	require.Contains(t, r.Mistakes[0], "overloaded")

	s.lie = func(http.ResponseWriter, *http.Request) bool { time.Sleep(time.Minute); return false }
	r, err = play(t, s, func(c *Config) { c.Scenario, c.Timeout = Cold, 100*time.Millisecond })
	require.NoError(t, err)
	require.Equal(t, r.Everyone.Requests, r.Everyone.Failed)
	require.Equal(t, r.Everyone.Failed, r.Everyone.Status[0], "there was no answer")
	require.Contains(t, r.Mistakes[0], "GET /users/")
}

func TestAContextEndsALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second+time.Millisecond)
		defer cancel()
		s := newServer(1000)
		l, err := New(Config{Base: "http://guard", Scenario: Cold, Users: 1000, Rate: 10, Transport: s})
		require.NoError(t, err)
		require.Zero(t, l.Report().Seconds)
		r, err := l.Run(ctx)
		require.NoError(t, err)
		require.Equal(t, uint64(51), r.Everyone.Requests)
		require.Zero(t, r.Everyone.Failed, "who had come was served")
		require.InDelta(t, 5, r.Seconds, 0.01)
		time.Sleep(time.Hour)
		require.Equal(t, r, l.Report(), "a report stands when the load is over")
		_, err = l.Run(t.Context())
		require.ErrorIs(t, err, ErrConfig, "a load runs once")
	})
}

func TestACacheThatCannotBeEmptied(t *testing.T) {
	away := errors.New("redis is away")
	_, err := Run(t.Context(), Config{
		Base: "http://guard", Scenario: Cold, Users: 2,
		EmptyCache: func(context.Context) error { return away },
	})
	require.ErrorIs(t, err, away)
}

func TestConfigurationsThatCannotBePlayed(t *testing.T) {
	good := Config{Base: "http://127.0.0.1:8080", Scenario: Attack, Users: 2}
	l, err := New(good)
	require.NoError(t, err)
	require.Equal(t, 1000.0, l.config.Rate)
	require.NotZero(t, l.config.Seed)
	require.Less(t, Normal.UsualRate(), Attack.UsualRate())
	for name, spoil := range map[string]func(*Config){
		"no URL":           func(c *Config) { c.Base = "127.0.0.1:8080" },
		"an odd URL":       func(c *Config) { c.Base = "ftp://127.0.0.1" },
		"a broken URL":     func(c *Config) { c.Base = "http://\x00" },
		"no scenario":      func(c *Config) { c.Scenario = "a riot" },
		"no users":         func(c *Config) { c.Users = 1 },
		"no workers":       func(c *Config) { c.Workers = -1 },
		"a negative rate":  func(c *Config) { c.Rate = -1 },
		"a share above 1":  func(c *Config) { c.Attackers = 1.1 },
		"a negative time":  func(c *Config) { c.For = -time.Second },
		"no time to reply": func(c *Config) { c.Timeout = -time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			spoil(&bad)
			_, err := Run(t.Context(), bad)
			require.ErrorIs(t, err, ErrConfig)
		})
	}
}

// TestOverTheNetwork plays against a server with a port, as fast as it can.
func TestOverTheNetwork(t *testing.T) {
	s := newServer(1000)
	listener := httptest.NewServer(s)
	defer listener.Close()
	r, err := Run(t.Context(), Config{
		Base: listener.URL + "/", Scenario: Normal, Users: 1000, For: 300 * time.Millisecond, Workers: 4,
		Unpaced: true,
	})
	require.NoError(t, err, "%v", r.Mistakes)
	require.NotZero(t, r.Everyone.Requests)
	require.Zero(t, r.Everyone.Failed, "%v", r.Mistakes)
}
