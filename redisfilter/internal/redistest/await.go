package redistest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	pollInterval = 10 * time.Millisecond // at most

	// tellAfter is when Await says what it waits for: what a machine does at once needs no line in the log.
	tellAfter = 30 * time.Second
)

// Await waits until condition, which it calls on the caller's goroutine, returns true. It has no limit of its own, as
// no time is long enough for every machine. What never happens ends with the time limit of go test, and the log says
// by then what was waited for.
func Await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	begun, told, pause := time.Now(), false, time.Millisecond
	for !condition() {
		if !told && time.Since(begun) > tellAfter {
			told = true
			t.Logf("redistest: still waiting: %s", what)
		}
		time.Sleep(pause)
		pause = min(2*pause, pollInterval)
	}
}

// Opened returns the client that open opens, with the patience of Patient. A server that is slow, for which the error
// matches away, answers a later poll.
func Opened[C any](t testing.TB, open func(context.Context, *redis.UniversalOptions) (C, error), away error,
	o *redis.UniversalOptions) (client C) {
	t.Helper()
	Await(t, "a client opens", func() bool {
		var err error
		if client, err = open(t.Context(), Patient(o)); err != nil && !errors.Is(err, away) {
			t.Fatal(err)
		}
		return err == nil
	})
	return client
}
