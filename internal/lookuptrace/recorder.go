package lookuptrace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is returned by Close of a recorder that was closed before.
var ErrClosed = errors.New("siftkv: the lookup trace is closed")

const (
	numShards = 8
	numChunks = 32 // 4 MiB in all

	// flushPeriod is how long a lookup stays in memory at most.
	flushPeriod = time.Second
)

// Options say what a Recorder records.
type Options struct {
	Keys  bool   // keys, not hashes
	OneIn uint32 // lookups of one key in so many; 0 is 1
}

// Stats are what a Recorder has done.
type Stats struct {
	Recorded uint64 // lookups in the trace
	Dropped  uint64 // lookups that were to be recorded and are not
	Bytes    uint64 // of the trace
}

// A Recorder writes a trace. Lookups go into one of several chunks, whichever is not
// being written to; a goroutine of the recorder's own writes them out. A lookup waits
// neither for that nor for another lookup: what finds no room is dropped, and counted.
type Recorder struct {
	header Header
	secret maphash.Seed
	most   uint64 // a key is recorded if the mixed hash is not above
	now    func() uint64
	shards [numShards]shard
	free   chan *chunk // empty ones
	full   chan *chunk // takes all there are, so that sending never waits
	quit   chan struct{}
	done   chan struct{}

	recorded, dropped, bytes atomic.Uint64
	closed                   atomic.Bool

	w   io.Writer // of the recorder's goroutine, as err is
	err error     // the first of a write; nothing is written after it
}

// A shard is a chunk that one lookup at a time writes to.
type shard struct {
	mu     sync.Mutex
	chunk  *chunk // nil: take one when it is needed
	closed bool
	_      [40]byte // a cache line of its own
}

// NewRecorder writes the header of a trace to w, and then lookups as they come. The
// caller closes the recorder, and w after it. What is written to w was in memory for a
// second at most.
func NewRecorder(w io.Writer, o Options) (*Recorder, error) {
	start := time.Now()
	h := Header{ID: rand.Uint64(), Start: start, Keys: o.Keys, OneIn: max(1, o.OneIn)}
	r := newRecorder(w, h, func() uint64 { return uint64(time.Since(start)) })
	if r.write(h.append(nil)); r.err != nil {
		return nil, r.err
	}
	go r.run()
	return r, nil
}

// newRecorder returns a recorder that has not begun.
func newRecorder(w io.Writer, h Header, now func() uint64) *Recorder {
	r := &Recorder{
		header: h, secret: maphash.MakeSeed(), most: math.MaxUint64 / uint64(h.OneIn), now: now, w: w,
		free: make(chan *chunk, numChunks), full: make(chan *chunk, numChunks),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	for range numChunks {
		r.free <- newChunk()
	}
	return r
}

// mixer spreads hashes (the golden ratio), so that which keys are recorded does not
// depend on bits that others choose by.
const mixer = 0x9e3779b97f4a7c15

// Record notes a lookup of a key, whose hash says whether it is one of those that are
// recorded: all lookups of a key are, or none. It does not keep the key, allocates
// nothing and does not wait. It may be called by several goroutines, during and after
// Close too.
func (r *Recorder) Record(key []byte, hash uint64, found, value bool) {
	if hash*mixer > r.most || r.closed.Load() {
		return
	}
	bits := uint64(0)
	if found {
		bits = bitFound
	}
	if value {
		bits |= bitValue
	}
	size := len(key)
	var word [hashSize]byte
	if !r.header.Keys {
		hash = maphash.Bytes(r.secret, key) // from here on: which frame it is in must not tell of the other
		binary.LittleEndian.PutUint64(word[:], hash)
		key = word[:]
	}
	first := uint(hash >> 40)
	for i := range uint(numShards) {
		s := &r.shards[(first+i)%numShards]
		if !s.mu.TryLock() {
			continue
		}
		ok := r.add(s, key, size, bits)
		s.mu.Unlock()
		if !ok {
			r.dropped.Add(1)
		}
		return
	}
	r.dropped.Add(1)
}

// add appends a lookup to a shard that is locked. It reports false if there is no room.
func (r *Recorder) add(s *shard, key []byte, size int, bits uint64) bool {
	if s.closed {
		return true // it came after the end
	}
	at := r.now() // with the lock, so that times ascend in a chunk
	if s.chunk != nil && s.chunk.add(at, key, size, bits) {
		return true
	}
	if s.chunk != nil {
		r.full <- s.chunk
		s.chunk = nil
	}
	select {
	case s.chunk = <-r.free:
		return s.chunk.add(at, key, size, bits)
	default:
		return false
	}
}

// run writes chunks out as they fill, and what there is once in a while.
func (r *Recorder) run() {
	defer close(r.done)
	ticker := time.NewTicker(flushPeriod)
	defer ticker.Stop()
	for {
		select {
		case c := <-r.full:
			r.writeChunk(c)
		case <-ticker.C:
			r.flush(false)
		case <-r.quit:
			r.flush(true)
			return
		}
	}
}

// flush writes everything out that is in memory. The last one ends the shards.
func (r *Recorder) flush(last bool) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		c := s.chunk
		s.chunk = nil
		s.closed = last
		s.mu.Unlock()
		if c != nil {
			r.writeChunk(c)
		}
	}
	for {
		select {
		case c := <-r.full:
			r.writeChunk(c)
		default:
			return
		}
	}
}

// writeChunk writes a chunk and gives it back.
func (r *Recorder) writeChunk(c *chunk) {
	if r.write(c.seal(r.header.ID, r.bytes.Load(), r.dropped.Load())); r.err == nil {
		r.recorded.Add(uint64(c.count))
	} else {
		r.dropped.Add(uint64(c.count))
	}
	c.reset()
	r.free <- c
}

// write writes bytes, unless that has failed before.
func (r *Recorder) write(data []byte) {
	if r.err != nil {
		return
	}
	if _, err := r.w.Write(data); err != nil {
		r.err = fmt.Errorf("write the lookup trace: %w", err)
		return
	}
	r.bytes.Add(uint64(len(data)))
}

// Stats returns what has been written so far. After Close it is final.
func (r *Recorder) Stats() Stats {
	return Stats{Recorded: r.recorded.Load(), Dropped: r.dropped.Load(), Bytes: r.bytes.Load()}
}

// Close writes what is in memory, and the end. It returns the first error of the
// writer: the trace is then good up to there.
func (r *Recorder) Close() error {
	if r.closed.Swap(true) {
		return ErrClosed
	}
	close(r.quit)
	<-r.done
	r.write(endFrame(r.header.ID, r.bytes.Load(), r.recorded.Load(), r.dropped.Load()))
	return r.err
}
