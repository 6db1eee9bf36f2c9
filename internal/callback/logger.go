package callback

import (
	"context"
	"log/slog"
)

// Logger returns a logger that calls the handler of l by Do. A message is lost if the handler panics or calls
// runtime.Goexit.
func Logger(l *slog.Logger) *slog.Logger {
	if _, ok := l.Handler().(handler); ok {
		return l
	}
	return slog.New(handler{l.Handler()})
}

type handler struct{ of slog.Handler }

const ofLogger = "Logger"

func (h handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	_ = Do(ofLogger, func() error { enabled = h.of.Enabled(ctx, level); return nil })
	return enabled
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	return Do(ofLogger, func() error { return h.of.Handle(ctx, r) })
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.derive(func() slog.Handler { return h.of.WithAttrs(attrs) })
}

func (h handler) WithGroup(name string) slog.Handler {
	return h.derive(func() slog.Handler { return h.of.WithGroup(name) })
}

// derive returns the handler that with makes, or h if it makes none.
func (h handler) derive(with func() slog.Handler) slog.Handler {
	next := h
	_ = Do(ofLogger, func() error { next = handler{with()}; return nil })
	return next
}
