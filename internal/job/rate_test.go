package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRateLimiter(t *testing.T) {
	const rate = 1 << 20
	l := RateLimiter{Rate: rate}
	at := time.Unix(100, 0)
	require.Equal(t, time.Second/8, l.spend(at, rate/8), "the bucket begins empty")
	at = at.Add(time.Second / 8)
	require.Zero(t, l.spend(at, 0), "the debt is paid")
	at = at.Add(time.Hour)
	require.LessOrEqual(t, l.spend(at, rate/10), time.Duration(0), "no more than the burst was saved up")
	require.InDelta(t, time.Second/10, l.spend(at, rate/10), 1e4)
	for range 100 {
		l.spend(at, rate) // nothing waits
	}
	require.InDelta(t, 2*time.Second, l.spend(at, rate), 1e6, "most of the debt is forgotten")
}
