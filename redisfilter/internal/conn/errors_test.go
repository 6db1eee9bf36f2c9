package conn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A reply is an error that a server answered.
type reply string

func (r reply) Error() string { return string(r) }

// RedisError implements redis.Error.
func (reply) RedisError() {}

// A cluster moves slots while it is used: its client follows, and tries again.
func TestMovedInACluster(t *testing.T) {
	moved := reply("MOVED 1 127.0.0.1:7000")
	require.ErrorIs(t, (&Conn{follows: true}).Unavailable(moved), ErrUnavailable)
	require.ErrorIs(t, (&Conn{}).Unavailable(moved), ErrRefused)
}
