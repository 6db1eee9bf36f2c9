package callback

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDoMakesErrors(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	require.NoError(t, Do("f", func() error { return nil }))
	require.Equal(t, failed, Do("f", func() error { return failed }))

	var e *Error
	require.ErrorAs(t, Do("Events.Flushed", func() error { panic("boom") }), &e)
	require.EqualError(t, e, "siftkv: Events.Flushed panicked: boom")
	require.Equal(t, "boom", e.Value)
	require.Contains(t, string(e.Stack), "TestDoMakesErrors")

	require.ErrorAs(t, Do("Logger", func() error { runtime.Goexit(); return nil }), &e)
	require.EqualError(t, e, "siftkv: Logger called runtime.Goexit")

	require.ErrorAs(t, Do("f", func() error { panic(nil) }), &e)
	require.NotNil(t, e.Value, "it is told from a Goexit")

	require.ErrorAs(t, Catch("f", func() error { panic(failed) }), &e)
	require.Equal(t, failed, e.Value)
	require.NotErrorIs(t, e, failed, "what a function panics with is not the store's error")
}

// rude is a handler that does not return.
type rude struct {
	slog.Handler
	leave func()
	when  string
}

func (h rude) act(when string) {
	if when == h.when {
		h.leave()
	}
}
func (h rude) Enabled(context.Context, slog.Level) bool  { h.act("enabled"); return true }
func (h rude) Handle(context.Context, slog.Record) error { h.act("handle"); return nil }
func (h rude) WithAttrs([]slog.Attr) slog.Handler        { h.act("attrs"); return h }
func (h rude) WithGroup(string) slog.Handler             { h.act("group"); return h }

func TestLoggerReturns(t *testing.T) {
	t.Parallel()
	for _, leave := range []func(){runtime.Goexit, func() { panic("boom") }} {
		for _, when := range []string{"enabled", "handle", "attrs", "group"} {
			l := Logger(slog.New(rude{leave: leave, when: when}))
			l.With("a", 1).WithGroup("g").Info("message")
			require.Equal(t, l, Logger(l), "it is wrapped once")
		}
	}
}

func TestLogHasTheStack(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := Logger(slog.New(slog.NewTextHandler(&b, nil)))
	Log(l, nil)
	Log(l, errors.New("another error"))
	require.Empty(t, b.String())
	Log(l, Do("Events.Flushed", func() error { panic("boom") }))
	require.Contains(t, b.String(), "Events.Flushed")
	require.Contains(t, b.String(), "TestLogHasTheStack")
}
