package conn

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Script runs on the server, in one piece.
type Script struct {
	source string
	digest string
}

// NewScript returns a script by its text.
func NewScript(source string) Script { return Script{source, redis.NewScript(source).Hash()} }

// Once is a command that a client of a cluster does not send again when it gets no answer: the command may have been
// executed, and would find what it did itself.
type Once struct{ redis.Cmder }

// NoRetry implements redis.Cmder.
func (Once) NoRetry() bool { return true }

// A Call is the keys, one or more, and the arguments of one execution of a script.
type Call struct {
	Keys []string
	Args []any
}

func (s Call) command(ctx context.Context, name, script string) *redis.IntSliceCmd {
	args := make([]any, 0, 3+len(s.Keys)+len(s.Args))
	args = append(args, name, script, len(s.Keys))
	for _, key := range s.Keys {
		args = append(args, key)
	}
	return redis.NewIntSliceCmd(ctx, append(args, s.Args...)...)
}

// RunScript executes a script once for each call, those of one slot in their order: in one trip, and once more where
// a server does not have the script yet.
func (c *Conn) RunScript(ctx context.Context, s Script, calls []Call) []*redis.IntSliceCmd {
	replies := make([]*redis.IntSliceCmd, len(calls))
	cmds := make([]redis.Cmder, len(calls))
	for i, call := range calls {
		replies[i] = call.command(ctx, "evalsha", s.digest)
		cmds[i] = Once{replies[i]}
	}
	c.Run(ctx, cmds...)
	cmds = cmds[:0]
	for i, call := range calls {
		if err := replies[i].Err(); err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
			replies[i] = call.command(ctx, "eval", s.source)
			cmds = append(cmds, Once{replies[i]})
		}
	}
	c.Run(ctx, cmds...)
	return replies
}
