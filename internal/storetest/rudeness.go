package storetest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Rudeness is a way for a function of the application not to return, once it is armed.
type Rudeness struct {
	Leave  func()
	Armed  atomic.Bool
	Called atomic.Bool
	Within string // not empty: only where a function of this name is on the stack
}

// Act is what a function of the application calls.
func (r *Rudeness) Act() {
	if r.Armed.Load() && (r.Within == "" || isWithin(r.Within)) {
		r.Called.Store(true)
		r.Leave()
	}
}

// isWithin reports whether a function of a name, or one in it, is on the caller's stack.
func isWithin(name string) bool {
	callers := make([]uintptr, 100)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for f, more := frames.Next(); more; f, more = frames.Next() {
		if strings.Contains(f.Function, name) {
			return true
		}
	}
	return false
}

// Soon returns when f has. It fails the test if f panics, ends its goroutine, or takes longer than a minute.
func Soon(t *testing.T, what string, f func()) {
	t.Helper()
	returned, panicked := leave(t, what, f)
	require.Empty(t, panicked, what+" panics")
	require.True(t, returned || t.Failed(), what+" ends its goroutine")
}

// SoonOrLeaves is Soon for a call in which a Rudeness is armed: f may panic, or end its goroutine.
func SoonOrLeaves(t *testing.T, what string, f func()) {
	t.Helper()
	leave(t, what, f)
}

// leave reports whether f returned, and with what it panicked otherwise.
func leave(t *testing.T, what string, f func()) (returned bool, panicked string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}()
		f()
		returned = true
	}()
	select {
	case <-done:
		return returned, panicked
	case <-time.After(time.Minute):
		stacks := make([]byte, 1<<20)
		require.FailNow(t, what+" does not return", string(stacks[:runtime.Stack(stacks, true)]))
		return false, ""
	}
}

// Acknowledge writes what a store must not lose, and returns it. One of the keys, "ttl", lives for a day.
func Acknowledge[O any](t *testing.T, db interface {
	Set(key, value []byte, o O) error
	SetTTL(key, value []byte, ttl time.Duration, o O) error
	Flush(ctx context.Context) error
}, o O) Model {
	t.Helper()
	want := Model{}
	for i := range 20 {
		k := fmt.Sprintf("k%d", i)
		require.NoError(t, db.Set([]byte(k), []byte(k), o))
		want[k] = k
		if i == 10 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.SetTTL([]byte("ttl"), []byte("1"), 24*time.Hour, o))
	want["ttl"] = "1"
	return want
}

// RequireAcknowledged requires that a store has what was acknowledged. It may have more.
func RequireAcknowledged(t *testing.T, m Model, get func(key []byte) ([]byte, error)) {
	t.Helper()
	for k, v := range m {
		got, err := get([]byte(k))
		require.NoError(t, err, k)
		require.Equal(t, v, string(got), k)
	}
}
