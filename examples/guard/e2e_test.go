package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/inprocess"
	"github.com/siftkv/siftkv/redisfilter/mirror"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
)

// patience is longer than go test lets a test run.
const patience = time.Hour

// ground is the servers of a test: what several services share.
type ground struct {
	redis *redisServer // nil: one in this process stands in
	kill  func()       // ends Redis
	addr  string       // of Redis
	args  []string
}

// newGround starts Redis and PostgreSQL.
func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{redis: startRedis(t)}
	if g.redis != nil {
		g.addr, g.kill = g.redis.Addr, g.redis.Kill
	} else {
		server, err := inprocess.Start()
		require.NoError(t, err)
		t.Cleanup(server.Close)
		g.addr, g.kill = server.Addr(), server.Close
	}
	g.args = append(g.args, "--redis", g.addr)
	if connect := startPostgres(t); connect != "" {
		g.args = append(g.args, "--postgres", connect)
	} else {
		g.args = append(g.args, "--data", t.TempDir())
	}
	return g
}

// service is one of the processes of a service.
type service struct {
	*guard.Guard
	t   *testing.T
	url string
}

// flags are those of a service on this ground. A slow machine is no outage of Redis: no
// request runs out of time, as none that commits a row meets a load of the filters.
func (g *ground) flags(t *testing.T, args ...string) (f flags) {
	t.Helper()
	parser, err := kong.New(&f)
	require.NoError(t, err)
	_, err = parser.Parse(append(append([]string{"--users=2000"}, g.args...), args...))
	require.NoError(t, err)
	f.Timeout, f.RedisTimeout, f.Grace = patience, patience, 50*time.Millisecond
	return f
}

// start starts a service with flags of its own.
func (g *ground) start(t *testing.T, args ...string) *service {
	t.Helper()
	f := g.flags(t, args...)
	p, err := openParts(t.Context(), f, slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	s := &service{Guard: newGuard(p, f), t: t}
	server := httptest.NewServer(handler(s.Guard, f))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ready waits until the filters can say "no".
func (s *service) ready() *service {
	s.t.Helper()
	require.NoError(s.t, s.Filters.Ready(s.t.Context()))
	return s
}

// client keeps as many connections as tests have goroutines.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// answer is an answer of the service.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request. It may be called from any goroutine: an answer of status 0 is
// none.
func (s *service) do(method, path, body string) answer {
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		return answer{body: err.Error()}
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{body: err.Error()}
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

func (s *service) get(path string) answer { return s.do(http.MethodGet, path, "") }

func (s *service) signUp(name string) answer {
	return s.do(http.MethodPost, "/users", fmt.Sprintf(`{"name":%q}`, name))
}

// require checks the status of an answer.
func (s *service) require(status int, a answer) answer {
	s.t.Helper()
	require.Equal(s.t, status, a.status, a.body)
	return a
}

// each calls f with 0 to n-1 from some goroutines.
func each(n, goroutines int, f func(i int)) {
	var group sync.WaitGroup
	for worker := range goroutines {
		group.Go(func() {
			for i := worker; i < n; i += goroutines {
				f(i)
			}
		})
	}
	group.Wait()
}

// statuses counts the statuses of n answers.
func statuses(n int, ask func(i int) answer) map[int]int {
	var mu sync.Mutex
	counts := make(map[int]int)
	each(n, 16, func(i int) {
		a := ask(i)
		mu.Lock()
		defer mu.Unlock()
		counts[a.status]++
	})
	return counts
}

func TestInput(t *testing.T) {
	t.Parallel()
	s := newGround(t).start(t)
	for _, test := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodGet, "/users/0", "", 400},
		{http.MethodGet, "/users/007", "", 400},
		{http.MethodGet, "/users/ann", "", 400},
		{http.MethodGet, "/users/9223372036854775808", "", 400},
		{http.MethodGet, "/users/%00", "", 400},
		{http.MethodGet, "/names/Ann", "", 400},
		{http.MethodGet, "/names/%7Busers%7D", "", 400},
		{http.MethodPost, "/banned/x", "", 400},
		{http.MethodDelete, "/banned/-1", "", 400},
		{http.MethodGet, "/banned/1.5", "", 400},
		{http.MethodPost, "/users", "", 400},
		{http.MethodPost, "/users", "null", 400},
		{http.MethodPost, "/users", "[]", 400},
		{http.MethodPost, "/users", `{"name":7}`, 400},
		{http.MethodPost, "/users", `{"name":"` + strings.Repeat("a", 10_000) + `"}`, 400},
		{http.MethodPost, "/users", `{"name":"a b"}`, 400},
		{http.MethodPut, "/users/7", "", 405},
		{http.MethodGet, "/nothing", "", 404},
	} {
		a := s.do(test.method, test.path, test.body)
		require.Equal(t, test.status, a.status, "%s %s", test.method, test.path)
		if a.status == 400 {
			var body struct{ Error string }
			require.NoError(t, json.Unmarshal([]byte(a.body), &body))
			require.NotEmpty(t, body.Error)
			require.Equal(t, "application/json", a.header.Get("Content-Type"))
		}
	}
	require.Zero(t, s.Counters.Database.Queries.Load(), "the database was not asked")
}

// What the database is asked for ten thousand different keys that do not exist.
func TestQueriesForAbsentKeys(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rate string
		most uint64 // the mean and three deviations of a binomial distribution
	}{{"0.01", 130}, {"0.001", 20}} {
		t.Run(test.rate, func(t *testing.T) {
			t.Parallel()
			const absent = 10_000
			s := newGround(t).start(t, "--users=20000", "--capacity=20000", "--rate", test.rate).ready()
			ask := func(first int64) uint64 {
				before := s.Counters.Database.Queries.Load()
				require.Equal(t, map[int]int{404: absent}, statuses(absent, func(i int) answer {
					return s.get(fmt.Sprintf("/users/%d", first+int64(i)))
				}))
				return s.Counters.Database.Queries.Load() - before
			}
			guarded := ask(1 << 50)
			s.Switch.Set(false)
			bare := ask(1 << 51)
			t.Logf("of 10,000 absent keys %d asked the database, without the filter %d", guarded, bare)
			require.LessOrEqual(t, guarded, test.most)
			require.GreaterOrEqual(t, bare, uint64(absent))
			require.LessOrEqual(t, bare, uint64(absent+50), "a few false positives of the black list")
		})
	}
}

// The table of bans outgrows the filter that was made for it, while it is served and while it is loaded.
func TestMoreBansThanTheFilterWasMadeFor(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.start(t, "--bans=200").ready()
	for i := range 230 {
		await(t, func() bool {
			a := s.do(http.MethodPost, fmt.Sprintf("/banned/%d", i+1), "")
			require.Contains(t, []int{204, 503}, a.status, a.body)
			return a.status == 204
		})
	}
	require.NotZero(t, s.Counters.Banned.Full.Load())
	s.require(200, s.get("/readyz"))
	for i := range 1000 {
		_, err := s.Store.Ban(t.Context(), int64(231+i))
		require.NoError(t, err)
	}
	again := g.start(t, "--bans=200", "--rebuild")
	for _, s := range []*service{s, again} {
		require.Equal(t, map[int]int{403: 1230}, statuses(1230, func(i int) answer {
			return s.get(fmt.Sprintf("/users/%d", 1+i))
		}))
	}
}

// A process of the service sees at once what another did.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	a, b := g.start(t).ready(), g.start(t).ready()

	var u struct{ ID, Name string }
	require.NoError(t, json.Unmarshal([]byte(a.require(201, a.signUp("ann")).body), &u))
	require.Equal(t, "ann", u.Name)
	require.JSONEq(t, fmt.Sprintf(`{"id":%q,"name":"ann"}`, u.ID), b.require(200, b.get("/users/"+u.ID)).body)
	b.require(409, b.signUp("ann"))
	require.JSONEq(t, `{"name":"ann","taken":true}`, b.require(200, b.get("/names/ann")).body)
	require.JSONEq(t, `{"name":"bob","taken":false}`, b.require(200, b.get("/names/bob")).body)

	b.require(200, b.get("/users/7"))
	a.require(204, a.do(http.MethodPost, "/banned/7", ""))
	b.require(403, b.get("/users/7"))
	require.JSONEq(t, `{"id":"7","banned":true}`, b.require(200, b.get("/banned/7")).body)
	b.require(204, b.do(http.MethodDelete, "/banned/7", ""))
	a.require(200, a.get("/users/7"))
}

// With copies of the filters most answers need no trip, and each process learns of
// the others' sign-ups.
func TestMirror(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	if g.redis == nil {
		t.Skip("what stands in for redis-server announces no changes")
	}
	a, b := g.start(t, "--mirror").ready(), g.start(t, "--mirror").ready()
	copied, ok := b.Filters.Users.(*mirror.Mirror)
	require.True(t, ok)
	before := copied.Stats()
	require.Equal(t, map[int]int{404: 1000}, statuses(1000, func(i int) answer {
		return b.get(fmt.Sprintf("/users/%d", 1<<50+i))
	}))
	after := copied.Stats()
	require.Greater(t, after.No-before.No, uint64(950), "answers without a trip")

	var u struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(a.require(201, a.signUp("ann")).body), &u))
	a.require(200, a.get("/users/"+u.ID))
	await(t, func() bool { return b.get("/users/"+u.ID).status == 200 })
	b.require(409, b.signUp("ann"))
}

func TestOneNameManySignUps(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	processes := []*service{g.start(t).ready(), g.start(t).ready()}
	for round := range 5 {
		name := fmt.Sprintf("wanted%d", round)
		require.Equal(t, map[int]int{201: 1, 409: 31},
			statuses(32, func(i int) answer { return processes[i%2].signUp(name) }))
	}
}

// Redis is killed in the middle, and comes back empty.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	const users = 2000
	args := []string{"--db-conns=4", "--db-queue=1000"}
	open := g.start(t, append(args, "--fail=open")...).ready()
	closed := g.start(t, append(args, "--fail=closed")...).ready()
	present := func(i int) string { return fmt.Sprintf("/users/%d", 1+i%users) }
	for _, s := range []*service{open, closed} {
		require.Equal(t, map[int]int{200: users}, statuses(users, func(i int) answer { return s.get(present(i)) }))
		s.require(404, s.get("/users/999999"))
	}
	name := open.require(201, open.signUp("before")).body

	g.kill()
	require.Equal(t, map[int]int{200: users}, statuses(users, func(i int) answer {
		if running := open.Counters.Database.Running.Load(); running > 4 {
			return answer{body: fmt.Sprintf("%d statements at once", running)}
		}
		return open.get(present(i))
	}))
	open.require(404, open.get("/users/999999"))
	open.require(503, open.signUp("during"))
	open.require(200, open.get("/readyz"))
	require.Equal(t, map[int]int{503: 100}, statuses(100, func(i int) answer { return closed.get(present(i)) }))
	require.Equal(t, "1", closed.get("/users/1").header.Get("Retry-After"))
	closed.require(503, closed.get("/readyz"))

	if g.redis == nil {
		return // newGround has said what stands in, and that does not come back
	}
	g.redis.Start()
	for i := 0; open.Filters.Ready(quick(t)) != nil || closed.Filters.Ready(quick(t)) != nil; i += 50 {
		require.Zero(t, statuses(50, func(k int) answer { return open.get(present(i + k)) })[404])
		require.Zero(t, statuses(50, func(k int) answer { return closed.get(present(i + k)) })[404])
	}
	var u struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(name), &u))
	for _, s := range []*service{open, closed} {
		require.Equal(t, map[int]int{200: users}, statuses(users, func(i int) answer { return s.get(present(i)) }))
		s.require(200, s.get("/users/"+u.ID))
		before := s.Counters.Users.No.Load()
		s.require(404, s.get("/users/888888"))
		require.Equal(t, before+1, s.Counters.Users.No.Load(), "the filter knows again")
	}
	closed.require(201, closed.signUp("after"))
	open.require(409, open.signUp("after"))
}

// quick returns a context that has no time to wait.
func quick(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
