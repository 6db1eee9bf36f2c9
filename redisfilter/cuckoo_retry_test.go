package redisfilter

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
)

// deadlines is a hook that notes how long commands may take.
type deadlines struct {
	gate
	longest time.Duration
	once    bool // a command was among them that is not sent again
}

func (d *deadlines) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" || cmd.Name() == "eval" {
			end, ok := ctx.Deadline()
			if !ok {
				end = time.Now().Add(time.Hour)
			}
			d.once = d.once || cmd.NoRetry()
			d.longest = max(d.longest, time.Until(end))
		}
		return next(ctx, cmd)
	}
}

// A removal that is sent again when its answer is forgotten takes another key away.
func TestChangesAreNotSentAgainOnceTheirAnswersAreForgotten(t *testing.T) {
	t.Parallel()
	c := openClient(t, startServer(t).Addr)
	k, err := NewCuckoo(t.Context(), c, "users", 1000, 0.01, quiet(Options{StartEmpty: true}))
	require.NoError(t, err)
	defer k.Close()
	d := &deadlines{gate: gate{match: func(redis.Cmder) bool { return false }}}
	conn.Of(c).RDB.AddHook(d)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	require.NoError(t, k.Add(ctx, key(1)))
	removed, err := k.Remove(ctx, key(1))
	require.NoError(t, err)
	require.True(t, removed)
	require.Positive(t, d.longest)
	require.Less(t, d.longest, cuckootable.Memory)
	require.False(t, d.once, "before that a client may send them again")
}
