package load

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const users = 100

// serve starts a service of the users 1 to 100 that answers in some way.
func serve(t *testing.T, answer func(w http.ResponseWriter, id int64)) *Load {
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var id int64
		_, err := fmt.Sscanf(r.URL.Path, "/users/%d", &id)
		if err != nil || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer(w, id)
	}))
	t.Cleanup(listener.Close)
	return &Load{Base: listener.URL, Users: users, Rate: 2000}
}

// truth is the answer of a service that knows.
func truth(w http.ResponseWriter, id int64) {
	if id > users {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = fmt.Fprintf(w, `{"id":"%d","name":"ann"}`, id)
}

// run attacks until the service was asked n times.
func run(t *testing.T, answer func(http.ResponseWriter, int64), n int64) *Load {
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	var asked atomic.Int64
	l := serve(t, func(w http.ResponseWriter, id int64) {
		if answer(w, id); asked.Add(1) == n {
			enough()
		}
	})
	l.Run(ctx, time.Hour)
	return l
}

func TestAnAttackAsksForOtherKeysEachTime(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	absent, popular := map[int64]bool{}, map[int64]int{}
	l := run(t, func(w http.ResponseWriter, id int64) {
		truth(w, id)
		mu.Lock()
		defer mu.Unlock()
		if id > users {
			absent[id] = true
		} else {
			popular[id]++
		}
	}, 2000)
	f := l.Figures()
	require.Zero(t, f.Failed)
	require.Zero(t, f.Wrong)
	require.Empty(t, f.Mistake)
	require.Len(t, absent, int(f.Absent), "each for another one")
	require.InDelta(t, attackers, float64(f.Absent)/float64(f.Absent+f.Users), 0.03)
	require.Greater(t, popular[1], popular[users/2], "few users are asked for often")
	p50, p99 := l.Waits()
	require.Positive(t, p50)
	require.GreaterOrEqual(t, p99, p50)
	p50, _ = l.Waits()
	require.Zero(t, p50, "nobody waited since")
}

func TestWrongAnswersAndFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer  func(http.ResponseWriter, int64)
		wrong   func(Figures) uint64
		failed  func(Figures) uint64
		mistake string
	}{
		"all exist": {func(w http.ResponseWriter, id int64) { truth(w, min(id, users)) },
			func(f Figures) uint64 { return f.Absent }, nil, "the user exists: false"},
		"none exists": {func(w http.ResponseWriter, id int64) { truth(w, users+1) },
			func(f Figures) uint64 { return f.Users }, nil, "the user exists: true"},
		"another user": {func(w http.ResponseWriter, id int64) { truth(w, id+id%2*users) }, nil, nil, ""},
		"overload": {func(w http.ResponseWriter, _ int64) { w.WriteHeader(503) }, nil,
			func(f Figures) uint64 { return f.Users + f.Absent }, "status 503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := run(t, test.answer, 300).Figures()
			if test.wrong != nil {
				require.GreaterOrEqual(t, f.Wrong, test.wrong(f))
			}
			if test.failed != nil {
				require.Equal(t, test.failed(f), f.Failed)
				require.Zero(t, f.Wrong)
			}
			if name == "another user" {
				require.Positive(t, f.Wrong)
			}
			require.Contains(t, f.Mistake, test.mistake)
		})
	}
}

// A service that is away fails each request, and the attack goes on.
func TestAServiceThatIsAway(t *testing.T) {
	t.Parallel()
	l := &Load{Base: "http://127.0.0.1:1", Users: users, Rate: 1000}
	for i := 0; i < 100 && l.Figures().Failed == 0; i++ { // a busy machine may end an attack before a visitor comes
		l.Run(t.Context(), 50*time.Millisecond)
	}
	f := l.Figures()
	require.Positive(t, f.Failed)
	require.Equal(t, f.Users+f.Absent, f.Failed)
	require.False(t, strings.Contains(f.Mistake, `"http`), "the path is there once: %s", f.Mistake)
}

// Visitors wait from the moment when they are due: a service that serves one at a time cannot hide the queue.
func TestWaitsCountFromTheMomentThatIsDue(t *testing.T) {
	t.Parallel()
	var one sync.Mutex
	l := run(t, func(w http.ResponseWriter, id int64) {
		one.Lock()
		defer one.Unlock()
		time.Sleep(2 * time.Millisecond)
		truth(w, id)
	}, 300)
	_, p99 := l.Waits()
	require.Greater(t, p99, 200*time.Millisecond, "the last of 300 visitors came 450 ms late")
}
