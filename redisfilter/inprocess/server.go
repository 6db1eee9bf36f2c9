// Package inprocess is a Redis server inside the program that starts it, for tests of programs
// that use filters and for demonstrations: no redis-server has to be installed.
//
// It is miniredis with what that lacks and the filters need: BITFIELD and BITFIELD_RO, keys that
// expire as time passes, the fields of INFO that name a server and its role, and statistics of
// commands. Tests hold its replies against a real server's. It has no replicas, no cluster and no
// tracking, and no limit of memory: it evicts nothing. Scripts have cjson, but not bit, struct and
// cmsgpack, and a BITFIELD in a transaction gives numbers of 53 bits at most.
package inprocess

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// A look for keys that have expired goes through all keys. The next begins after expiryPeriod, or
// later so that the looks take no more than 1/expiryShare of the time. Keys may outlive their time
// by that.
const (
	expiryPeriod = 20 * time.Millisecond
	expiryShare  = 20
)

// A Server is a Redis server on a loopback port. It keeps everything in memory. Its methods may be
// called concurrently.
type Server struct {
	m       *miniredis.Miniredis
	srv     *server.Server // m's
	started time.Time
	runID   string // this server's, and its history's
	replID  string

	connections connections
	stats       stats

	closing   sync.Once
	closed    chan struct{}
	expiryEnd chan struct{}
}

// Start starts an empty server on a free port of 127.0.0.1.
func Start() (*Server, error) {
	m, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("inprocess: start a Redis server: %w", err)
	}
	s := &Server{m: m, srv: m.Server(), started: time.Now(), runID: newID(), replID: newID(),
		closed: make(chan struct{}), expiryEnd: make(chan struct{})}
	err = errors.Join(
		s.srv.Register("BITFIELD", s.bitfield),
		s.srv.Register("BITFIELD_RO", s.bitfield, readOnly),
		s.srv.Register(scriptProbe, s.noteScript, readOnly),
		s.srv.Register("CONFIG", s.config),
	)
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("inprocess: add commands to the Redis server: %w", err)
	}
	s.srv.SetPreHook(s.before)
	go s.expire()
	return s, nil
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

// expire removes keys as they expire. miniredis can do so by itself, but then goes through all
// keys before every command.
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
