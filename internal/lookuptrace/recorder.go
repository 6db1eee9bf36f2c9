package lookuptrace

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/callback"
)

// RecorderOf returns the recorder of a tracer of the package kv/lookuptrace, which sets it.
var RecorderOf func(tracer any) *Recorder

const (
	numShards = 8
	numChunks = 32 // 4 MiB in all

	// flushPeriod is how long a lookup stays in memory at most.
	flushPeriod = time.Second
)

// The kinds of chunks that a shard has.
const (
	ofLookups = iota
	ofScans
	numKinds
)

// Options say what a Recorder records.
type Options struct {
	Keys  bool   // keys, not hashes
	OneIn uint32 // lookups of one key in OneIn, and scans from such keys; 0 is 1
}

// Stats are what a Recorder has done.
type Stats struct {
	Recorded uint64 // lookups in the trace
	Scans    uint64 // in the trace
	Dropped  uint64 // lookups and scans that were to be recorded and are not
	Bytes    uint64 // of the trace
}

// A Recorder writes a trace. Lookups and scans go into one of several chunks, whichever is not
// being written to; a goroutine of the recorder's own writes them out. None waits
// for that or for another: what finds no room is dropped, and counted.
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

	recorded, scans, dropped, bytes atomic.Uint64
	closed                          atomic.Bool

	w   io.Writer // of the recorder's goroutine, as err is
	err error     // the first of a write; nothing is written after it
}

// A shard is a chunk of each kind, which one lookup or scan at a time writes to.
type shard struct {
	mu     sync.Mutex
	chunks [numKinds]*chunk // nil: take one when it is needed
	closed bool
	_      [32]byte // a cache line of its own
}

// NewRecorder writes the header of a trace to w, and then lookups as they come. The caller closes the recorder, and w
// after it. Lookups are in memory for at most a second before they are written.
func NewRecorder(w io.Writer, o Options) (*Recorder, error) {
	start := time.Now()
	h := Header{Version: version, ID: rand.Uint64(), Start: start, Keys: o.Keys, OneIn: max(1, o.OneIn)}
	r := newRecorder(w, h, func() uint64 { return uint64(time.Since(start)) })
	if r.write(h.encode()); r.err != nil {
		return nil, r.err
	}
	go r.run()
	return r, nil
}

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

// mixer spreads hashes: the golden ratio.
const mixer = 0x9e3779b97f4a7c15

// Mix returns what of a hash says whether its key is recorded: Most or less. It does not depend on bits that others
// choose by.
func Mix(hash uint64) uint64 { return hash * mixer }

// Most returns the largest mixed hash of what is recorded.
func (r *Recorder) Most() uint64 { return r.most }

// Record notes a lookup of a key. The hash decides whether the key is recorded: all
// lookups of a key are, or none. It does not keep the key, allocates nothing and does not
// wait. It may be called by several goroutines, during and after Close too.
func (r *Recorder) Record(key []byte, hash uint64, found, value bool) {
	if !r.Wants(hash) {
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
		hash = maphash.Bytes(r.secret, key) // also below: the frame must not give away the other hash
		binary.LittleEndian.PutUint64(word[:], hash)
		key = word[:]
	}
	s := r.lock(hash)
	if s == nil {
		return
	}
	at := r.now() // with the lock, so that times ascend in a chunk
	c := s.chunks[ofLookups]
	if c == nil || !c.add(at, key, size, bits) {
		if c = r.nextChunk(s, ofLookups); c != nil {
			c.add(at, key, size, bits)
		}
	}
	s.mu.Unlock()
}

// lock locks a shard, of those that are free one that the hash picks. If there is none, what was
// to be recorded is counted as dropped, and nil returned; and also after the end.
func (r *Recorder) lock(hash uint64) *shard {
	first := uint(hash >> 40)
	for i := range uint(numShards) {
		s := &r.shards[(first+i)%numShards]
		if !s.mu.TryLock() {
			continue
		}
		if s.closed {
			s.mu.Unlock()
			return nil
		}
		return s
	}
	r.dropped.Add(1)
	return nil
}

// nextChunk hands a chunk of a locked shard over, if there is one, and returns an empty one in its place. If there is
// none, it counts the record as dropped and returns nil.
func (r *Recorder) nextChunk(s *shard, kind int) *chunk {
	if s.chunks[kind] != nil {
		r.full <- s.chunks[kind]
		s.chunks[kind] = nil
	}
	select {
	case c := <-r.free:
		c.kind = kindOf[kind]
		s.chunks[kind] = c
		return c
	default:
		r.dropped.Add(1)
		return nil
	}
}

// kindOf is the type of a frame of each kind.
var kindOf = [numKinds]byte{typeLookups, typeScans}

// RecordScan notes a scan. Its bounds have keys, whatever the trace has, and its time is not set.
// The hash, of where it starts, decides whether it is recorded. Otherwise it is as Record.
func (r *Recorder) RecordScan(scan *Scan, hash uint64) {
	if !r.Wants(hash) {
		return
	}
	kept := *scan
	if kept.Start.Set && kept.End.Set {
		kept.Common = CommonPrefix(kept.Start.Key, kept.End.Key)
	}
	for _, b := range []*Bound{&kept.Start, &kept.End} {
		b.Size = min(len(b.Key), maxBoundLen)
		if b.Set && !r.header.Keys {
			b.Hash = maphash.Bytes(r.secret, b.Key)
		}
	}
	if !r.header.Keys {
		hash = kept.Start.Hash ^ kept.End.Hash // as for a lookup
	}
	s := r.lock(hash)
	if s == nil {
		return
	}
	at := r.now()
	c := s.chunks[ofScans]
	if c == nil || !c.addScan(at, &kept, r.header.Keys) {
		if c = r.nextChunk(s, ofScans); c != nil {
			c.addScan(at, &kept, r.header.Keys)
		}
	}
	s.mu.Unlock()
}

// Wants reports whether what has a hash is recorded.
func (r *Recorder) Wants(hash uint64) bool { return Mix(hash) <= r.most && !r.closed.Load() }

// CommonPrefix returns how many bytes two keys begin with in common.
func CommonPrefix(a, b []byte) int {
	n := min(len(a), len(b), maxBoundLen)
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
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
		chunks := s.chunks
		s.chunks = [numKinds]*chunk{}
		s.closed = last
		s.mu.Unlock()
		for _, c := range chunks {
			if c != nil {
				r.writeChunk(c)
			}
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
	count := &r.recorded
	if c.kind == typeScans {
		count = &r.scans
	}
	if r.write(c.seal(r.header.ID, r.bytes.Load(), r.dropped.Load())); r.err != nil {
		count = &r.dropped
	}
	count.Add(uint64(c.count))
	c.data, c.count, c.last = c.data[:0], 0, 0
	r.free <- c
}

// write writes bytes, unless that has failed before.
func (r *Recorder) write(data []byte) {
	if r.err != nil {
		return
	}
	err := callback.Do("the io.Writer of a lookup trace", func() error {
		_, err := r.w.Write(data)
		return err
	})
	if err != nil {
		r.err = fmt.Errorf("write the lookup trace: %w", err)
		return
	}
	r.bytes.Add(uint64(len(data)))
}

// Stats returns what has been written. After Close it is final.
func (r *Recorder) Stats() Stats {
	return Stats{Recorded: r.recorded.Load(), Scans: r.scans.Load(), Dropped: r.dropped.Load(), Bytes: r.bytes.Load()}
}

// Close writes what is in memory, and the end. It returns the first error of the
// writer: the trace is then good up to there.
func (r *Recorder) Close() error {
	if r.closed.Swap(true) {
		return base.ErrClosed
	}
	close(r.quit)
	<-r.done
	r.write(endFrame(r.header.ID, r.bytes.Load(), r.recorded.Load(), r.dropped.Load(), r.scans.Load()))
	return r.err
}
