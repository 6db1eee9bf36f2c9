package siftvault

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

func TestLevelsAndFields(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: &out, DisableTime: true}))
	l.Debug("nobody asked")
	l.Log(t.Context(), slog.LevelWarn-1, "below a warning")
	l.Warn("a warning", slog.Attr{}, "n", 1)
	l = l.With("a", 1).WithGroup("g").With("b", 2)
	l.Error("an error", "c", 3, slog.Group("h", "d", 4), slog.Group("", "e", 5))
	require.Equal(t, `[INFO]  below a warning
[WARN]  a warning: n=1
[ERROR] an error: a=1 g.b=2 g.c=3 g.h.d=4 g.e=5
`, out.String())
	for level, there := range map[slog.Level]bool{slog.LevelDebug: false, slog.LevelInfo: true, slog.LevelError: true} {
		require.Equal(t, there, l.Enabled(t.Context(), level), level)
	}
}
