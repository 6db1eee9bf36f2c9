package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/servertest"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

// existing is how many users there are.
const existing = 100

// A service stands for the real one: users 1 to 100 exist, others are a matter of its filter,
// which is wrong about one key in a hundred.
type service struct {
	counters *stats.Counters
	off      atomic.Bool
	asked    atomic.Uint64
	lies     atomic.Bool
	page     *Page
	url      string
}

func (s *service) On() bool    { return !s.off.Load() }
func (s *service) Set(on bool) { s.off.Store(!on) }

// serve starts a service with a page, which ends with the test.
func serve(t *testing.T, change func(*Config)) *service {
	s := &service{counters: stats.New()}
	mux := http.NewServeMux()
	listener := httptest.NewServer(mux)
	t.Cleanup(listener.Close)
	s.url = listener.URL
	config := Config{
		Counters: s.counters.Snapshot, Filter: s, Promise: 0.01, Every: 20 * time.Millisecond,
		Load: load.Config{Base: s.url, Users: existing, Rate: 500, Workers: 4},
	}
	if change != nil {
		change(&config)
	}
	s.page = New(config)
	s.page.Register(mux)
	mux.HandleFunc("/", s.answer)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.page.Run(t.Context())
	}()
	t.Cleanup(func() { <-ended })
	return s
}

// answer answers a lookup; other requests are not understood.
func (s *service) answer(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, "/users/"), 10, 64)
	status := http.StatusNotFound
	switch {
	case err != nil || r.Method != http.MethodGet:
		status = http.StatusNotImplemented
	case id > existing:
		s.absent()
	case !s.lies.Load():
		status = http.StatusOK
		s.counters.Users.Answered(true, nil)
		s.counters.Cache.Asked.Add(1)
		s.counters.Cache.Hits.Add(1)
	}
	s.counters.Request(status, time.Millisecond)
	w.WriteHeader(status)
	if status == http.StatusOK {
		_ = json.NewEncoder(w).Encode(map[string]string{"id": strconv.FormatInt(id, 10), "name": "ann"})
	}
}

// absent counts a lookup of a key that does not exist.
func (s *service) absent() {
	maybe := s.off.Load() || s.asked.Add(1)%100 == 0
	if s.On() {
		s.counters.Users.Answered(maybe, nil)
	}
	if maybe {
		s.counters.Cache.Asked.Add(1)
		s.counters.Cache.Misses.Add(1)
		s.counters.Database.Queries.Add(1)
		s.counters.Database.Empty.Add(1)
	}
}

// ask sends a request and returns the answer's status.
func (s *service) ask(t *testing.T, method, path string, header ...string) int {
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// look returns the picture after a sample.
func (s *service) look(t *testing.T, after string) (p picture) {
	response, err := http.Get(s.url + "/live?after=" + after)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&p))
	return p
}

// await looks until something is true of the picture.
func (s *service) await(t *testing.T, what func(picture) bool) (p picture) {
	servertest.Await(t, func() bool {
		p = s.look(t, "0")
		return what(p)
	})
	return p
}
