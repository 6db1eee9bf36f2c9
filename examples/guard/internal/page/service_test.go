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

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/load"
)

// existing is how many users there are.
const existing = 100

// A service stands for the real one: users 1 to 100 exist, others are a matter of its filter,
// which is wrong about one key in a hundred.
type service struct {
	guard.Switch
	counters *guard.Counters
	asked    atomic.Uint64
	lies     atomic.Bool
	page     *Page
	url      string
}

// serve starts a service with a page, which ends with the test.
func serve(t *testing.T) *service {
	s := &service{counters: guard.NewCounters()}
	mux := http.NewServeMux()
	listener := httptest.NewServer(mux)
	t.Cleanup(listener.Close)
	s.url = listener.URL
	s.page = &Page{
		Layers: s.counters.Layers, Filter: &s.Switch, Promise: 0.01, Every: 20 * time.Millisecond,
		Length: time.Hour, // a busy machine shows an attack late
		Load:   &load.Load{Base: s.url, Users: existing, Rate: 500},
	}
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
		s.counters.Users.Maybe.Add(1)
		s.counters.Cache.Hits.Add(1)
	}
	s.counters.Requests.Add(1)
	w.WriteHeader(status)
	if status == http.StatusOK {
		_ = json.NewEncoder(w).Encode(map[string]string{"id": strconv.FormatInt(id, 10), "name": "ann"})
	}
}

// absent counts a lookup of a key that does not exist.
func (s *service) absent() {
	maybe := !s.On() || s.asked.Add(1)%100 == 0
	if !maybe {
		s.counters.Users.No.Add(1)
	} else {
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

// look returns the state.
func (s *service) look(t *testing.T) (p state) {
	response, err := http.Get(s.url + "/live")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&p))
	return p
}

// await looks until something is true of the state.
func (s *service) await(t *testing.T, what func(state) bool) (p state) {
	for p = s.look(t); !what(p); p = s.look(t) {
		time.Sleep(time.Millisecond)
	}
	return p
}
