// Package copies keeps local copies of strings of one Redis server, some thousands of some kilobytes, and tells which
// of them can be relied on.
//
// # What a fresh copy promises
//
// A copy is fresh at a time t if it holds every change that the server had acknowledged to anyone by t - Lease.
// Changes after that may be missing, except those that the program itself reported with Entry.Or: they are in the
// copy when Or returns. A copy that is not fresh promises nothing, yet each of its bits was set in Redis once, which
// is enough for a filter's "maybe".
//
// # How
//
// One RESP3 connection has CLIENT TRACKING on in its default mode: the server remembers the keys that were read
// through this connection. It pushes an invalidation when one of them is changed, deleted, expired or evicted, when
// all of them are flushed, and when its table of keys overflows. It queues the push while it runs the command that
// makes the change, so before the writer has its reply. A broadcasting connection would not do. Its pushes wait for
// the end of a turn of the event loop, and a PONG of the same turn overtakes them. It also reports every key below a
// prefix, not those that were read.
//
// The mirror sends a round every Poll: the copies to be fetched, at most Batch bytes of them, then CLIENT ID.
// Everything that the server pushed before it answered the round has been taken into account when the round ends. For
// go-redis calls the handler of a push before it reads the next reply, on the goroutine that reads both. From then
// on, all that was acknowledged before the round was *sent* is known, and the lease dates from there.
//
// CLIENT ID takes the place of PING because its reply shows two things more. A connection that was replaced behind
// our back tracks nothing, and has another id. Replies that slipped by one do not end in an id.
//
// # What go-redis' own client-side cache lacks
//
// It keeps replies per command and pooled connection, and copies a value for each reader. It bounds the age of
// replies but does not date them by one that came after. A program cannot add to a value what it has just written.
// Its connections, handshake and handling of pushes are used here.
package copies

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options of a mirror; zero values are the defaults.
type Options struct {
	Lease   time.Duration // how far back the promise of a fresh copy reaches; 1 s
	Refresh time.Duration // the least time between two fetches of one string; 1 s
	Poll    time.Duration // the time between two rounds; 100 ms, at most a quarter of Lease
	Batch   int           // bytes to ask for in one round; 256 KB, or one string if it is longer
	Logger  *slog.Logger  // told about lost connections; nil: none is

	// Valid examines a string of the right length; one that it refuses is Lost. It may be nil.
	Valid func(key string, value []byte) bool

	// OnConnect examines a new connection before anything is read through it; an error gives the connection up. It
	// may be nil.
	OnConnect func(ctx context.Context, conn *redis.Conn) error
}

// withDefaults returns o with its defaults in place of zero values.
func (o Options) withDefaults() Options {
	if o.Lease <= 0 {
		o.Lease = time.Second
	}
	if o.Refresh <= 0 {
		o.Refresh = time.Second
	}
	if o.Poll <= 0 {
		o.Poll = 100 * time.Millisecond
	}
	o.Poll = max(1, min(o.Poll, o.Lease/4))
	if o.Batch <= 0 {
		o.Batch = 256 << 10
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Server has copies of strings of one server. Any number of goroutines may use it. In a cluster each master has a
// mirror of its own; which keys belong to which is the caller's affair.
type Server struct {
	options Options
	client  *redis.Client
	born    time.Time
	lease   atomic.Pointer[time.Time] // when the last round was sent that was answered; nil: none counts
	wake    chan struct{}             // has room for one: a string was wanted
	stop    context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex // guards the fields below; locked before an Entry's
	entries map[string]*Entry
	due     []*Entry // to be fetched as soon as Refresh allows
	counts  counts
	err     error // why there is no connection
}

// counts are events since New.
type counts struct {
	connects, fetches, invalidations uint64
}

// never is a time on the mirror's clock before all others.
const never = time.Duration(math.MinInt64 / 2)

// New returns a mirror of the server that options lead to, and connects in the background: to begin with, nothing is
// fresh. It takes the address, dialer, TLS, credentials, database and timeouts from options, which it does not keep.
func New(options *redis.Options, o Options) *Server {
	ctx, stop := context.WithCancel(context.Background())
	m := &Server{
		options: o.withDefaults(),
		born:    time.Now(),
		wake:    make(chan struct{}, 1),
		stop:    stop,
		done:    make(chan struct{}),
		entries: make(map[string]*Entry),
	}
	m.client = m.dedicated(options)
	go m.run(ctx)
	return m
}

// Close ends the connection; it may be called again. Nothing is fresh after it.
func (m *Server) Close() error {
	m.stop()
	err := m.client.Close() // also ends a read in progress
	<-m.done
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}

// Entry returns the place of a copy of the string at key, the same one for every call with the key until Forget. Only
// a string of exactly size bytes, at least 1, is copied, and none before Want is called.
func (m *Server) Entry(key string, size int) *Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	if e == nil {
		e = &Entry{mirror: m, key: key, size: max(size, 1), fetched: never}
		e.value.Store(&value{})
		m.entries[key] = e
	}
	return e
}

// Want has copies made and kept, beginning with the next round. A program makes entries known to its goroutines
// before it wants them, so that Or reaches them. A bit that was set before Want needs no report, as every fetch
// brings it.
func (m *Server) Want(entries ...*Entry) {
	m.mu.Lock()
	for _, e := range entries {
		if !e.wanted && m.entries[e.key] == e {
			e.wanted = true
			m.queue(e)
		}
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Forget ends the keeping of copies. Their entries are never fresh again.
func (m *Server) Forget(entries ...*Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		if m.entries[e.key] == e {
			delete(m.entries, e.key)
		}
		e.forget()
	}
}

// Stats describe a mirror.
type Stats struct {
	Unknown, Clean, Dirty, Lost int // entries by State

	Bytes         int    // of all copies
	Connects      uint64 // connections that were made
	Fetches       uint64 // strings that were asked for
	Invalidations uint64 // of strings, by the server
	Leased        bool   // whether clean copies are fresh
	Err           error  // why there is no connection, if there is none
}

// Stats counts the entries, which takes some microseconds per thousand.
func (m *Server) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Stats{
		Connects:      m.counts.connects,
		Fetches:       m.counts.fetches,
		Invalidations: m.counts.invalidations,
		Leased:        m.leased(),
		Err:           m.err,
	}
	for _, e := range m.entries {
		v := e.value.Load()
		s.Bytes += 8 * len(v.words)
		switch v.State() {
		case Unknown:
			s.Unknown++
		case Clean:
			s.Clean++
		case Dirty:
			s.Dirty++
		case Lost:
			s.Lost++
		}
	}
	return s
}

// leased reports whether clean copies are fresh.
func (m *Server) leased() bool {
	sent := m.lease.Load()
	if sent == nil {
		return false
	}
	// The wall clock counts too: the monotonic one stands while a machine sleeps.
	now := time.Now()
	return now.Sub(*sent) < m.options.Lease && now.UnixNano()-sent.UnixNano() < int64(m.options.Lease)
}

// queue has e fetched as soon as Refresh allows, if it is wanted. The caller holds m.mu.
func (m *Server) queue(e *Entry) {
	if e.queued || !e.wanted {
		return
	}
	e.queued = true
	m.due = append(m.due, e)
}

// takeDue returns entries that may be fetched now, of Batch bytes at most unless there is only one, and whether more
// could be.
func (m *Server) takeDue(now time.Duration) (batch []*Entry, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	room := m.options.Batch
	wait := m.due[:0]
	for _, e := range m.due {
		switch {
		case m.entries[e.key] != e: // forgotten
			e.queued = false
		case now-e.fetched < m.options.Refresh:
			wait = append(wait, e)
		case room < e.size && len(batch) > 0:
			wait, more = append(wait, e), true
		default:
			e.queued = false
			room -= e.size
			batch = append(batch, e)
		}
	}
	clear(m.due[len(wait):])
	m.due = wait
	return batch, more
}

// invalidate notes that the strings at keys are not what they were.
func (m *Server) invalidate(keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if e := m.entries[key]; e != nil {
			m.counts.invalidations++
			m.spoil(e)
		}
	}
}

// invalidateAll notes that no copy is known to be what the server has.
func (m *Server) invalidateAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		m.spoil(e)
	}
}

// spoil ends the copy's being clean and has it fetched again. The caller holds m.mu.
func (m *Server) spoil(e *Entry) {
	if flying := e.spoil(); !flying {
		m.queue(e)
	}
}
