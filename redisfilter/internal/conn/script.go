package conn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// A Script runs on the server, in one piece.
type Script struct {
	text, digest string

	Repeatable bool // a call that is sent again does nothing more, so a client of a cluster may do so
}

// NewScript returns a script by its text.
func NewScript(text string) Script { return Script{text: text, digest: redis.NewScript(text).Hash()} }

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

// Short returns the command that executes the script, if the server has it.
func (s Script) Short(ctx context.Context, c Call) *redis.Cmd {
	return c.command(ctx, "evalsha", s.digest)
}

// Long returns the command that brings the script and executes it.
func (s Script) Long(ctx context.Context, c Call) *redis.Cmd { return c.command(ctx, "eval", s.text) }

func (c Call) command(ctx context.Context, name, script string) *redis.Cmd {
	args := append(make([]any, 0, 3+len(c.Keys)+len(c.Args)), name, script, len(c.Keys))
	for _, key := range c.Keys {
		args = append(args, key)
	}
	return redis.NewCmd(ctx, append(args, c.Args...)...)
}

// NoScript reports whether an error is that of a server which does not have the script.
func NoScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

// send returns the command to run for a call.
func (s Script) send(cmd redis.Cmder) redis.Cmder {
	if s.Repeatable {
		return cmd
	}
	return Once{cmd}
}

// RunScript executes a script once for each call, those of one slot in their order: in one trip, and once more where a
// server does not have the script yet.
func (c *Conn) RunScript(ctx context.Context, s Script, calls []Call) []*redis.Cmd {
	replies := make([]*redis.Cmd, len(calls))
	cmds := make([]redis.Cmder, len(calls))
	for i, call := range calls {
		replies[i] = s.Short(ctx, call)
		cmds[i] = s.send(replies[i])
	}
	c.Run(ctx, cmds...)
	cmds = cmds[:0]
	for i, call := range calls {
		if NoScript(replies[i].Err()) {
			replies[i] = s.Long(ctx, call)
			cmds = append(cmds, s.send(replies[i]))
		}
	}
	c.Run(ctx, cmds...)
	return replies
}
