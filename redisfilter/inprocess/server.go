// Package inprocess is a Redis server inside the program that starts it, for tests of programs that use filters and
// for demonstrations: no redis-server has to be installed.
//
// It is miniredis with what the filters need in addition: BITFIELD and BITFIELD_RO with GET and SET, keys that expire
// as time passes, and the fields of INFO that name a server and its role. Tests hold its replies against a real
// server's. It has one database, no replicas, no cluster and no tracking, and no limit of memory: it evicts nothing.
package inprocess

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// A look for keys that have expired goes through all keys. The next begins after expiryPeriod, or later so that the
// looks take no more than 1/expiryShare of the time. Keys may outlive their time by that.
const (
	expiryPeriod = 20 * time.Millisecond
	expiryShare  = 20
)

// A Server is a Redis server on a loopback port. It keeps everything in memory. Its methods may be called
// concurrently.
type Server struct {
	m      *miniredis.Miniredis
	srv    *server.Server // m's, which m forgets when it is closed
	info   string         // the reply to INFO
	script any            // the context of a script: commands that are called with it do not take miniredis' lock

	closing   sync.Once
	closed    chan struct{}
	expiryEnd chan struct{}
}

// probe is a command of our own. It is called from a script to get at the context of scripts.
const probe = "SIFTKV.SCRIPT"

// Start starts an empty server on a free port of 127.0.0.1.
func Start() (*Server, error) {
	m, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("inprocess: start a Redis server: %w", err)
	}
	s := &Server{m: m, srv: m.Server(), closed: make(chan struct{}), expiryEnd: make(chan struct{})}
	s.info = fmt.Sprintf("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:%s\r\n\r\n"+
		"# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_replid:%s\r\n", newID(), newID())
	err = errors.Join(
		s.srv.Register("BITFIELD", s.bitfield),
		s.srv.Register("BITFIELD_RO", s.bitfield, server.ReadOnlyOption()),
		s.srv.Register(probe, func(c *server.Peer, _ string, _ []string) {
			s.script = c.Ctx
			c.WriteOK()
		}),
	)
	if err == nil {
		_, err = s.call(nil, "EVAL", "return redis.call('"+probe+"')", "0")
	}
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("inprocess: add commands to the Redis server: %w", err)
	}
	s.srv.SetPreHook(s.before)
	go s.expire()
	return s, nil
}

// newID returns 40 random hexadecimal digits, as Redis names servers and histories.
func newID() string {
	id := make([]byte, 20)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// before sees every command before miniredis does. It returns true if it has replied.
func (s *Server) before(c *server.Peer, cmd string, args ...string) (done bool) {
	switch {
	case cmd == "INFO":
		c.WriteBulk(s.info)
	case cmd == "SELECT" && (len(args) != 1 || args[0] != "0"):
		c.WriteError("ERR the in-process server has one database")
	case cmd == probe:
		c.WriteError("ERR " + probe + " is for the server's own use")
	default:
		return false
	}
	return true
}

// call runs a command in a context and returns its reply: nil, an int, a string or a slice of those.
func (s *Server) call(context any, args ...string) (any, error) {
	var reply bytes.Buffer
	w := bufio.NewWriter(&reply)
	c := server.NewPeer(w)
	c.Ctx = context
	s.srv.Dispatch(c, args)
	c.Flush()
	return server.ParseReply(bufio.NewReader(&reply))
}

// Addr returns the address that the server listens on, as host:port.
func (s *Server) Addr() string { return s.m.Addr() }

// Close ends the server and its connections, and waits until they are gone. What it held is lost.
func (s *Server) Close() {
	s.closing.Do(func() {
		close(s.closed)
		<-s.expiryEnd
		s.m.Close()
	})
}

// expire removes keys as they expire. miniredis can do so by itself, but then goes through all keys before every
// command.
func (s *Server) expire() {
	defer close(s.expiryEnd)
	next := time.NewTimer(expiryPeriod)
	defer next.Stop()
	last := time.Now()
	for {
		select {
		case <-s.closed:
			return
		case <-next.C:
		}
		now := time.Now()
		s.m.FastForward(now.Sub(last))
		last = now
		next.Reset(max(expiryPeriod, expiryShare*time.Since(now)))
	}
}
