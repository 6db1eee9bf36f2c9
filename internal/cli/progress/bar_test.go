package progress

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	for _, c := range []struct {
		total, done int
		took        time.Duration
		want        string
	}{
		{0, 10, 3 * time.Second, "load                             3 s"},
		{100, 0, 0, "load                               0% ░░░░░░░░░░░░░░░░░░░░░░░░"},
		{100, 25, 10 * time.Second,
			"load                              25% ██████░░░░░░░░░░░░░░░░░░ 2 keys/s, 30s left"},
		{100, 120, time.Second,
			"load                             100% ████████████████████████ 120 keys/s, 0s left"},
	} {
		b := &bar{name: "load", unit: "keys", total: c.total, done: c.done}
		require.Equal(t, c.want, b.line(c.took))
	}
}
