package siftvault

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newLogger returns a logger of the store that says all to Vault's, with the level and the fields that it has there.
func newLogger(to hclog.Logger) *slog.Logger { return slog.New(logHandler{to: to}) }

// A logHandler is a slog.Handler over a logger of Vault.
type logHandler struct {
	to     hclog.Logger
	groups string // that are open, each with a dot behind it
}

// levelOf returns the level that Vault has for one of slog: the next one below, and Debug for what is below that.
func levelOf(l slog.Level) hclog.Level {
	switch {
	case l < slog.LevelInfo:
		return hclog.Debug
	case l < slog.LevelWarn:
		return hclog.Info
	case l < slog.LevelError:
		return hclog.Warn
	default:
		return hclog.Error
	}
}

func (h logHandler) Enabled(_ context.Context, l slog.Level) bool {
	switch levelOf(l) {
	case hclog.Debug:
		return h.to.IsDebug()
	case hclog.Info:
		return h.to.IsInfo()
	case hclog.Warn:
		return h.to.IsWarn()
	default:
		return h.to.IsError()
	}
}

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	var fields []any
	r.Attrs(func(a slog.Attr) bool {
		fields = h.append(fields, a)
		return true
	})
	h.to.Log(levelOf(r.Level), r.Message, fields...)
	return nil
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var fields []any
	for _, a := range attrs {
		fields = h.append(fields, a)
	}
	return logHandler{h.to.With(fields...), h.groups}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.to, h.groups + name + "."}
}

// append appends the name and the value of an attribute, of a group those of its members.
func (h logHandler) append(fields []any, a slog.Attr) []any {
	if a.Equal(slog.Attr{}) {
		return fields
	}
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		return append(fields, h.groups+a.Key, value.Any())
	}
	if a.Key != "" {
		h.groups += a.Key + "."
	}
	for _, member := range value.Group() {
		fields = h.append(fields, member)
	}
	return fields
}
