package inprocess

import (
	"bufio"
	"bytes"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// A command of ours reads and writes through commands that miniredis has, while nothing else runs.
// miniredis holds its lock for that while it runs a script, and the calls of a script do not take
// it again: they carry a context that says so. So a command that came by itself borrows such a
// context and takes the lock (atomically), one that came from a script has both already, and one
// that came in a transaction is queued as a script.

// scriptProbe is a command of our own. It is called from a script to get at the context of scripts.
const scriptProbe = "SIFTKV.SCRIPT"

// ownPeer is the name of the clients that we make for calls of our own.
const ownPeer = "\x00inprocess"

var readOnly = server.ReadOnlyOption()

// connections is what is known of the connections that need it.
type connections struct {
	mu    sync.Mutex
	byPtr map[*server.Peer]*connection
	noted map[string]any // the contexts that scriptProbes saw, by the names that they were given
}

type connection struct {
	queueing bool // between MULTI and EXEC
	context  any  // as a script on this connection has it, with its database; nil: not known
}

func (cs *connections) of(c *server.Peer) *connection {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	conn := cs.byPtr[c]
	if conn == nil {
		if cs.byPtr == nil {
			cs.byPtr = map[*server.Peer]*connection{}
		}
		conn = &connection{}
		cs.byPtr[c] = conn
		c.OnDisconnect(func() {
			cs.mu.Lock()
			defer cs.mu.Unlock()
			delete(cs.byPtr, c)
		})
	}
	return conn
}

// known returns nil for a connection that nothing is known of, and for the calls of a script.
func (cs *connections) known(c *server.Peer) *connection {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.byPtr[c]
}

// before sees every command before miniredis does. It returns true if it has replied.
func (s *Server) before(c *server.Peer, cmd string, args ...string) (done bool) {
	if c.ClientName == ownPeer || cmd == scriptProbe {
		return false
	}
	s.stats.count(cmd)
	s.follow(c, cmd, args)
	switch cmd {
	case "INFO":
		return s.info(c, args)
	case "MEMORY":
		return s.memory(c, args)
	case "SETRANGE":
		return s.setRange(c, args)
	case "SETBIT":
		return s.setBit(c, args)
	case "GETRANGE", "BITCOUNT":
		return s.stringRange(c, cmd, args)
	case "BITOP":
		return s.bitOp(c, args)
	}
	return false
}

// follow keeps what is known of the connection true.
func (s *Server) follow(c *server.Peer, cmd string, args []string) {
	switch {
	case cmd == "MULTI" && len(args) == 0 && !s.inScript(c):
		s.connections.of(c).queueing = true
	case (cmd == "EXEC" || cmd == "DISCARD") && len(args) == 0:
		if conn := s.connections.known(c); conn != nil {
			*conn = connection{} // EXEC may have selected another database
		}
	case cmd == "SELECT":
		if conn := s.connections.known(c); conn != nil {
			conn.context = nil
		}
	}
}

// inScript reports whether a script makes the call. It must not be asked in a transaction.
func (s *Server) inScript(c *server.Peer) bool {
	if c.Ctx == nil {
		return false // a connection's first command
	}
	_, err := s.call(c.Ctx, "EVALSHA", "", "0") // no such script, and no scripts in scripts
	return err != nil && !strings.HasPrefix(err.Error(), "NOSCRIPT")
}

// atomically runs f while no other command runs, with the context in which f may call others. In a
// transaction it queues the command instead, to come back with EXEC.
func (s *Server) atomically(c *server.Peer, cmd string, args []string, f func(context any)) {
	conn := s.connections.known(c)
	switch {
	case conn != nil && conn.queueing:
		const script = "return redis.pcall(unpack(ARGV))"
		s.srv.Dispatch(c, append([]string{"EVAL", script, "0", cmd}, args...))
		return
	case conn == nil && s.inScript(c):
		f(c.Ctx)
		return
	}
	conn = s.connections.of(c)
	if conn.context == nil {
		context, err := s.scriptContext(c)
		if err != nil {
			c.WriteError(err.Error())
			return
		}
		conn.context = context
	}
	s.m.Lock()
	defer s.m.Unlock()
	f(conn.context)
}

// scriptContext returns the context that a script on the connection would have. It fails only while
// the server is closed.
func (s *Server) scriptContext(c *server.Peer) (any, error) {
	name := newID()
	_, err := s.call(c.Ctx, "EVAL", "return redis.call('"+scriptProbe+"', ARGV[1])", "0", name)
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
	context := s.connections.noted[name]
	delete(s.connections.noted, name)
	return context, err
}

func (s *Server) noteScript(c *server.Peer, _ string, args []string) {
	if len(args) != 1 || !s.inScript(c) {
		c.WriteError("ERR " + scriptProbe + " is for the server's own use")
		return
	}
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
	if s.connections.noted == nil {
		s.connections.noted = map[string]any{}
	}
	s.connections.noted[args[0]] = c.Ctx
	c.WriteOK()
}

// call runs a command in a context and returns its reply: nil, an int, a string or a slice of those.
func (s *Server) call(context any, args ...string) (any, error) {
	var reply bytes.Buffer
	w := bufio.NewWriter(&reply)
	c := server.NewPeer(w)
	c.Ctx, c.ClientName = context, ownPeer
	s.srv.Dispatch(c, args)
	c.Flush()
	return server.ParseReply(bufio.NewReader(&reply))
}
