package inprocess

import (
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// The commands below run as Redis has them where miniredis differs. Each reports whether it has
// replied; miniredis runs the command otherwise.

const (
	// maxString is the length of the longest string, in bytes.
	maxString = 512 << 20

	errTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
)

// setRange is SETRANGE. Nothing is written for an empty value, and strings do not grow without a limit.
func (s *Server) setRange(c *server.Peer, args []string) (done bool) {
	if len(args) != 3 {
		return false
	}
	offset, ok := parseInt(args[1])
	switch {
	case !ok || offset < 0:
		return false
	case args[2] == "":
		s.srv.Dispatch(c, []string{"STRLEN", args[0]})
	case offset > maxString-int64(len(args[2])):
		s.fail(c, errTooLong)
	default:
		return false
	}
	return true
}

// setBit is SETBIT. It refuses what lies beyond the longest string.
func (s *Server) setBit(c *server.Peer, args []string) (done bool) {
	if len(args) != 3 {
		return false
	}
	if offset, ok := parseInt(args[1]); !ok || offset>>3 < maxString {
		return false
	}
	s.fail(c, errOffset)
	return true
}

// fail replies with an error. In a transaction it queues the error.
func (s *Server) fail(c *server.Peer, text string) {
	if conn := s.connections.known(c); conn != nil && conn.queueing {
		s.srv.Dispatch(c, []string{"EVAL", "return redis.error_reply(ARGV[1])", "0", text})
		return
	}
	c.WriteError(text)
}

// stringRange is GETRANGE and BITCOUNT. A range that ends before it begins is empty, even if both
// ends lie before the string.
func (s *Server) stringRange(c *server.Peer, cmd string, args []string) (done bool) {
	if len(args) != 3 {
		return false
	}
	from, ok1 := parseInt(args[1])
	to, ok2 := parseInt(args[2])
	if !ok1 || !ok2 || from >= 0 || to >= from {
		return false
	}
	s.srv.Dispatch(c, []string{cmd, args[0], "1", "0"})
	return true
}

// bitOp is BITOP, whose result does not inherit the time to live of what was there.
func (s *Server) bitOp(c *server.Peer, args []string) (done bool) {
	if len(args) < 3 {
		return false
	}
	s.atomically(c, "BITOP", args, func(context any) {
		reply, err := s.call(context, append([]string{"BITOP"}, args...)...)
		if err != nil {
			c.WriteError(err.Error())
			return
		}
		length, _ := reply.(int)
		if length == 0 { // miniredis has dropped the key but not its time
			_, _ = s.call(context, "SET", args[1], "")
			_, _ = s.call(context, "DEL", args[1])
		}
		_, _ = s.call(context, "PERSIST", args[1])
		c.WriteInt(length)
	})
	return true
}

// memory is MEMORY USAGE with SAMPLES, which do not matter: the whole value is looked at.
func (s *Server) memory(c *server.Peer, args []string) (done bool) {
	if len(args) != 4 || !strings.EqualFold(args[0], "USAGE") || !strings.EqualFold(args[2], "SAMPLES") {
		return false
	}
	s.srv.Dispatch(c, append([]string{"MEMORY"}, args[:2]...))
	return true
}
