package page

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/load"
)

// last returns the last sample of a state.
func (s *state) last() sample {
	if len(s.Samples) == 0 {
		return sample{}
	}
	return s.Samples[len(s.Samples)-1]
}

func TestTheButtons(t *testing.T) {
	s := serve(t)
	p := s.await(t, func(p state) bool { return len(p.Samples) > 2 })
	require.False(t, p.Running)
	require.Zero(t, p.Seconds)
	require.True(t, p.On)
	require.Equal(t, 3600.0, p.Limit)

	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/attack"))
	p = s.await(t, func(p state) bool { return p.last().Absent > 300 })
	require.True(t, p.Running)
	require.Positive(t, p.Seconds)
	require.Less(t, float64(p.last().Empty)/float64(p.last().Absent), 0.02)
	require.Positive(t, p.last().Users)
	s.await(t, func(p state) bool { return p.last().P50 > 0 && p.last().P99 >= p.last().P50 })

	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/filter?on=false"))
	before := p.last()
	p = s.await(t, func(p state) bool { return !p.last().On && p.last().Empty > before.Empty+300 })
	require.False(t, p.On)
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/filter?on=true"))
	require.True(t, s.look(t).On)

	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/attack"), "one is running")
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/stop"))
	p = s.await(t, func(p state) bool { return !p.Running })
	require.Empty(t, p.last().Mistake)
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/stop"), "there is nothing to stop")
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/attack"))
	require.True(t, s.look(t).Running)
}

func TestWrongAnswersAreShown(t *testing.T) {
	s := serve(t)
	s.lies.Store(true)
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/attack"))
	p := s.await(t, func(p state) bool { return p.last().Wrong > 0 })
	require.Contains(t, p.last().Mistake, "/users/")
}

func TestWhatIsNotUnderstood(t *testing.T) {
	s := serve(t)
	for path, status := range map[string]int{
		"GET /attack":            http.StatusNotImplemented, // none of the page's
		"GET /stop":              http.StatusNotImplemented,
		"POST /filter":           http.StatusBadRequest,
		"GET /live":              http.StatusOK,
		"GET /page/nothing.js":   http.StatusNotFound,
		"GET /page/..%2fpage.go": http.StatusBadRequest,
		"GET /":                  http.StatusOK,
	} {
		method, rest, _ := strings.Cut(path, " ")
		require.Equal(t, status, s.ask(t, method, rest), path)
	}
	require.False(t, s.look(t).Running)
}

// TestPagesOfOtherOrigins tries what a hostile page could make a browser send.
func TestPagesOfOtherOrigins(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"/attack", "/stop", "/filter?on=false"} {
		require.Equal(t, http.StatusForbidden, s.ask(t, "POST", path, "Sec-Fetch-Site", "cross-site"), path)
		require.Equal(t, http.StatusForbidden, s.ask(t, "POST", path, "Origin", "http://elsewhere.example"), path)
		require.Equal(t, http.StatusForbidden, s.ask(t, "POST", path, "Origin", "null"), path)
	}
	require.True(t, s.On())
	require.False(t, s.look(t).Running)
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/filter?on=false", "Origin", s.url))
	require.False(t, s.On())
}

func TestTheLastSamplesAreKept(t *testing.T) {
	p := &Page{Layers: guard.NewCounters().Layers, Load: &load.Load{}, Filter: &guard.Switch{}}
	require.NotNil(t, p.state().Samples, "no samples are [], not null")
	for range keep + 30 {
		p.take(time.Now())
	}
	require.Len(t, p.state().Samples, keep)
}

func TestNoAttackBeginsWhenTheServiceEnds(t *testing.T) {
	listener := httptest.NewServer(http.NotFoundHandler())
	defer listener.Close()
	p := &Page{
		Layers: guard.NewCounters().Layers, Filter: &guard.Switch{}, Every: time.Millisecond,
		Load: &load.Load{Base: listener.URL, Users: 10, Rate: 100},
	}
	p.attack()
	require.False(t, p.state().Running, "Run is not running")
	require.Equal(t, 60.0, p.state().Limit)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx)
	}()
	for !p.state().Running {
		p.attack()
	}
	cancel()
	<-ended
	require.False(t, p.state().Running)
	p.attack()
	require.False(t, p.state().Running)
}

// TestThePageIsSmallAndOfItself holds the parts against a bound, and against addresses of others.
func TestThePageIsSmallAndOfItself(t *testing.T) {
	list, err := fs.ReadDir(files, ".")
	require.NoError(t, err)
	size := 0
	for _, entry := range list {
		data, err := fs.ReadFile(files, entry.Name())
		require.NoError(t, err)
		size += len(data)
		text := strings.ReplaceAll(string(data), "http://www.w3.org/2000/svg", "")
		require.NotContains(t, text, "://", entry.Name())
		require.NotContains(t, text, "innerHTML", "texts of the service are no markup: "+entry.Name())
		for i, line := range strings.Split(string(data), "\n") {
			require.LessOrEqual(t, len(line), 260, entry.Name()+":"+strconv.Itoa(i+1))
		}
	}
	require.Less(t, size, 40_000, "bytes")
}
