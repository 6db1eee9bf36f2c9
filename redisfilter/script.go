package redisfilter

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A script runs on the server, in one piece.
type script struct {
	source string
	digest string
}

func newScript(source string) script { return script{source, redis.NewScript(source).Hash()} }

// once is a command that a client of a cluster does not send again when it gets no answer: the
// command may have been executed, and would find what it did itself.
type once struct{ redis.Cmder }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

// A scriptCall is the keys, one or more, and the arguments of one execution of a script.
type scriptCall struct {
	keys []string
	args []any
}

func (s scriptCall) command(ctx context.Context, name, script string) *redis.IntSliceCmd {
	args := make([]any, 0, 3+len(s.keys)+len(s.args))
	args = append(args, name, script, len(s.keys))
	for _, key := range s.keys {
		args = append(args, key)
	}
	return redis.NewIntSliceCmd(ctx, append(args, s.args...)...)
}

// runScript executes a script once for each call, those of one slot in their order: in one trip, and
// once more where a server does not have the script yet.
func (c *Client) runScript(ctx context.Context, s script, calls []scriptCall) []*redis.IntSliceCmd {
	replies := make([]*redis.IntSliceCmd, len(calls))
	cmds := make([]redis.Cmder, len(calls))
	for i, call := range calls {
		replies[i] = call.command(ctx, "evalsha", s.digest)
		cmds[i] = once{replies[i]}
	}
	c.run(ctx, cmds...)
	cmds = cmds[:0]
	for i, call := range calls {
		if err := replies[i].Err(); err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
			replies[i] = call.command(ctx, "eval", s.source)
			cmds = append(cmds, once{replies[i]})
		}
	}
	c.run(ctx, cmds...)
	return replies
}
