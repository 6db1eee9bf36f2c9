package kv

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRateLimiter(t *testing.T) {
	const rate = 1 << 20
	var l rateLimiter
	at := time.Unix(100, 0)
	require.Equal(t, time.Second/8, l.spend(at, rate/8, rate), "the bucket begins empty")
	at = at.Add(time.Second / 8)
	require.Zero(t, l.spend(at, 0, rate), "the debt is paid")
	at = at.Add(time.Hour)
	require.LessOrEqual(t, l.spend(at, rate/10, rate), time.Duration(0), "no more than the burst was saved up")
	require.InDelta(t, time.Second/10, l.spend(at, rate/10, rate), 1e4)
	for range 100 {
		l.spend(at, rate, rate) // nobody waits
	}
	require.InDelta(t, 2*time.Second, l.spend(at, rate, rate), 1e6, "most of the debt is forgotten")
}

// Compactions wait and flushes do not, and with level 0 full compactions do not either.
func TestCompactionRate(t *testing.T) {
	t.Parallel()
	o := tieredOptions(Leveled)
	o.CompactionRate = minCompactionRate
	o.L0CompactionThreshold, o.L0SlowdownThreshold, o.L0StopThreshold = 6, 6, 70
	db := openDir(t, "db", o)
	defer func() { require.NoError(t, db.Close()) }()
	pause := func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.compactions.paused = true
	}
	pause()
	want := model{}
	rng := rand.New(rand.NewPCG(1, 1))
	fill(t, db, want, rng, 5, 1000)
	require.Zero(t, db.Metrics().CompactionRateTime, "flushes do not wait")
	require.False(t, db.pressed())
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	// The file is one write. However long the test may have taken, no more than the
	// burst was saved up for it.
	m := db.Metrics()
	owed := time.Duration(m.CompactionWrittenBytes)*time.Second/minCompactionRate - burst
	require.Greater(t, owed, minPace)
	require.GreaterOrEqual(t, m.CompactionRateTime, owed)
	pause() // a compaction that works ends a pause
	fill(t, db, want, rng, 6, 1000)
	require.True(t, db.pressed())
	db.resumeCompactions()
	settleStore(t, db)
	require.False(t, db.pressed())
	requireContents(t, want, db)
}
