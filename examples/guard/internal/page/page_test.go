package page

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

func TestTheButtons(t *testing.T) {
	s := serve(t, nil)
	p := s.await(t, func(p picture) bool { return p.Last > 2 })
	require.False(t, p.Running)
	require.Empty(t, p.Scenario)
	require.True(t, p.Filter)
	require.True(t, p.Switch)
	require.Equal(t, 60.0, p.Limit)

	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/run?scenario=attack"))
	p = s.await(t, func(p picture) bool { return len(p.Kinds) > 0 && p.Kinds[0].Requests > 300 })
	require.True(t, p.Running)
	require.Equal(t, load.Attack, p.Scenario)
	require.Less(t, *p.Samples[len(p.Samples)-1].PerTenThousand, 110.0)

	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/filter?on=false"))
	p = s.await(t, func(p picture) bool {
		last := p.Samples[len(p.Samples)-1]
		return !last.Filter && *last.PerTenThousand > 2000 && last.PerSecond.Queries > 300
	})
	require.False(t, p.Filter)
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/filter?on=true"))
	require.True(t, s.look(t, "0").Filter)

	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/run?scenario=cold"), "another one takes its place")
	s.await(t, func(p picture) bool { return p.Running && p.Scenario == load.Cold && len(p.Kinds) == 1 })

	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/stop"))
	p = s.await(t, func(p picture) bool { return !p.Running })
	require.Empty(t, p.Failure)
	require.Equal(t, load.Cold, p.Scenario)
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/stop"), "there is nothing to stop")
}

func TestALoadEndsByItself(t *testing.T) {
	s := serve(t, func(c *Config) { c.Load.For = 50 * time.Millisecond })
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/run?scenario=attack"))
	p := s.await(t, func(p picture) bool { return !p.Running && p.Scenario != "" && p.Seconds >= 0.05 })
	require.Empty(t, p.Failure)
}

func TestWrongAnswersAreShown(t *testing.T) {
	s := serve(t, nil)
	s.lies.Store(true)
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/run?scenario=cold"))
	p := s.await(t, func(p picture) bool { return len(p.Kinds) > 0 && p.Kinds[0].Wrong > 0 })
	require.Equal(t, string(load.Lookups), p.Kinds[0].Name)
	require.Contains(t, p.Mistakes[0], "/users/")
}

func TestALoadThatCannotBePlayed(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.Load.EmptyCache = func(context.Context) error { return errors.New("redis is away") }
	})
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/run?scenario=cold"))
	p := s.await(t, func(p picture) bool { return p.Failure != "" })
	require.Contains(t, p.Failure, "redis is away")
	require.False(t, p.Running)

	s = serve(t, func(c *Config) { c.Load.Users = 0 })
	require.Equal(t, http.StatusInternalServerError, s.ask(t, "POST", "/run?scenario=cold"))
}

func TestWhatIsNotUnderstood(t *testing.T) {
	s := serve(t, func(c *Config) { c.Filter = nil })
	for path, status := range map[string]int{
		"POST /run":                   http.StatusBadRequest,
		"POST /run?scenario=a%20riot": http.StatusBadRequest,
		"GET /run?scenario=attack":    http.StatusNotImplemented, // none of the page's
		"GET /stop":                   http.StatusNotImplemented,
		"POST /filter":                http.StatusBadRequest,
		"POST /filter?on=false":       http.StatusConflict,
		"GET /live?after=-1":          http.StatusBadRequest,
		"GET /live?after=":            http.StatusOK,
		"GET /page/nothing.js":        http.StatusNotFound,
		"GET /page/..%2fpage.go":      http.StatusBadRequest,
		"GET /":                       http.StatusOK,
	} {
		method, rest, _ := strings.Cut(path, " ")
		require.Equal(t, status, s.ask(t, method, rest), path)
	}
	require.False(t, s.look(t, "0").Running)
}

// TestPagesOfOtherOrigins tries what a hostile page could make a browser send.
func TestPagesOfOtherOrigins(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{"/run?scenario=attack", "/stop", "/filter?on=false"} {
		require.Equal(t, http.StatusForbidden, s.ask(t, "POST", path, "Sec-Fetch-Site", "cross-site"), path)
		require.Equal(t, http.StatusForbidden, s.ask(t, "POST", path, "Origin", "http://elsewhere.example"), path)
		require.Equal(t, http.StatusForbidden, s.ask(t, "POST", path, "Origin", "null"), path)
	}
	require.True(t, s.On())
	require.False(t, s.look(t, "0").Running)
	require.Equal(t, http.StatusNoContent, s.ask(t, "POST", "/filter?on=false", "Origin", s.url))
	require.False(t, s.On())
}

func TestSamplesAfterANumber(t *testing.T) {
	p := New(Config{Counters: stats.New().Snapshot})
	fresh, last := p.after(0)
	require.Empty(t, fresh)
	require.Zero(t, last)
	for range keep + 30 {
		p.take()
	}
	for _, of := range []struct{ after, first uint64 }{{0, 31}, {5, 31}, {100, 101}, {149, 150}, {999, 31}} {
		fresh, last = p.after(of.after)
		require.Equal(t, uint64(keep+30), last)
		require.Equal(t, of.first, fresh[0].Number, "after %d", of.after)
		require.Equal(t, last, fresh[len(fresh)-1].Number)
	}
	fresh, _ = p.after(last)
	require.Empty(t, fresh)
}

func TestNothingIsPlayedWhenTheServiceEnds(t *testing.T) {
	listener := httptest.NewServer(http.NotFoundHandler())
	defer listener.Close()
	p := New(Config{Counters: stats.New().Snapshot, Load: load.Config{Base: listener.URL, Users: 10, Rate: 100}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx)
	}()
	require.NoError(t, p.player.play(ctx, load.Attack))
	cancel()
	<-ended
	running, _ := p.player.state()
	require.False(t, running)
	require.ErrorIs(t, p.player.play(t.Context(), load.Attack), errClosed)
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
