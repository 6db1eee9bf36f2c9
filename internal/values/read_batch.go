package values

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Values that are known before they are needed are read together, in file order. One request reads those of one file
// with only small gaps between them. If that fails, the caller reads the value alone and gets the error.

const (
	// maxGap bounds the bytes between two records that are read together: to read them costs less than a request or a
	// seek.
	maxGap = 16 << 10
	// maxJoined bounds the length of one read of several records. Records longer than half of it are read alone, so
	// that several are read at a time.
	maxJoined = 256 << 10
)

const (
	// DeviceWait is how long a read takes that waits for a device. Out of the system's memory it takes some
	// microseconds.
	DeviceWait = 40 * time.Microsecond
	// MaxReads bounds the reads that one call has under way. A device serves about as many side by side, and each that
	// a goroutine waits for may cost a thread.
	MaxReads = 32
	// MaxRequests bounds the requests that one call has under way for sorted files and blob files.
	MaxRequests = 64
)

// A Read is a value to read.
type Read struct {
	Handle blob.Handle
	Key    []byte
	Owner  int    // the caller's
	Alone  bool   // the batch does not read it
	Value  []byte // if Done
	Done   bool   // else the caller must read it
}

// A span is a part of a file with the records of one or several values.
type span struct {
	reader *blob.Reader // nil: of one value, which can only be read alone
	offset int64
	length int64
	reads  []*Read
	raw    []byte
	begun  bool // the system was asked for it, and reads
	read   bool
}

// takes reports whether the record of a handle is read together with those of the span. In the same file, it must be
// at or behind the last one's offset.
func (s *span) takes(h blob.Handle) bool {
	last := s.reads[len(s.reads)-1].Handle
	gap := h.Offset - (s.offset + s.length)
	return s.reader != nil && last.File == h.File && gap <= maxGap && gap <= h.Length && h.Length <= maxJoined/2 &&
		last.Length <= maxJoined/2 && s.length+gap+h.Length <= maxJoined
}

// A ReadBatch reads values together. The zero value is ready for use; a batch is for one goroutine.
type ReadBatch struct {
	Reads  []Read
	sorted []*Read
	spans  []span
	window *[]byte // of windows; nil: none yet
	plain  []byte  // values that were compressed
}

// windows are buffers for values that are read together.
var windows = sync.Pool{New: func() any { return new([]byte) }}

const (
	minWindow   = 256 << 10 // bytes of a new window
	maxWindow   = 1 << 20   // a larger one is not used again
	maxRetained = 64 << 10  // bytes for values that were compressed
)

// Read reads all values except those to read alone, into memory of the batch. Far says that each read is a request.
// Read reports whether reads take long, as requests always do.
func (b *ReadBatch) Read(s *Store, v *version.Version, far bool) (slow bool) {
	b.findSpans(s, v)
	b.place()
	left := 0 // spans that have to be waited for
	for i := range b.spans {
		s := &b.spans[i]
		if s.reader == nil {
			continue
		}
		now := s.reader.ReadNow(s.raw, s.offset)
		if now == vfs.NowDone {
			b.plain = s.finish(b.plain)
			continue
		}
		s.begun = now == vfs.NowBegun
		b.spans[left], b.spans[i] = b.spans[i], b.spans[left]
		left++
	}
	slow = waitAll(b.spans[:left], far)
	for i := range b.spans[:left] {
		if s := &b.spans[i]; s.read {
			b.plain = s.finish(b.plain)
		}
	}
	return slow
}

// ReadEach calls take with each value, which is valid until take returns, and with those that the caller must read.
// Once a read takes long, several goroutines read and call take. Far is as for Read.
func (b *ReadBatch) ReadEach(s *Store, v *version.Version, far bool, take func(r *Read)) {
	b.findSpans(s, v)
	for i := range b.spans {
		if far {
			callback.Parallel(len(b.spans), MaxRequests, func(n int) { b.spans[n].readEach(take) })
			return
		}
		began := time.Now()
		b.spans[i].readEach(take)
		if left := b.spans[i+1:]; len(left) > 1 && time.Since(began) >= DeviceWait {
			readBeside(left, take)
			return
		}
	}
}

// findSpans finds the spans of the values, in file order.
func (b *ReadBatch) findSpans(s *Store, v *version.Version) {
	for i := range b.Reads {
		if !b.Reads[i].Alone {
			b.sorted = append(b.sorted, &b.Reads[i])
		}
	}
	slices.SortFunc(b.sorted, func(a, b *Read) int {
		return cmp.Or(cmp.Compare(a.Handle.File, b.Handle.File), cmp.Compare(a.Handle.Offset, b.Handle.Offset))
	})
	for n, r := range b.sorted {
		if l := len(b.spans) - 1; l >= 0 && b.spans[l].takes(r.Handle) && b.spans[l].reader.Admits(r.Handle) {
			s := &b.spans[l]
			s.reads = b.sorted[n-len(s.reads) : n+1]
			s.length = max(s.length, r.Handle.Offset+r.Handle.Length-s.offset)
			continue
		}
		next := span{reads: b.sorted[n : n+1]}
		if reader, err := s.Reader(v, r.Handle.File); err == nil && reader.Admits(r.Handle) {
			next.reader, next.offset, next.length = reader, r.Handle.Offset, r.Handle.Length
		}
		b.spans = append(b.spans, next)
	}
}

// place gives each span its part of the window.
func (b *ReadBatch) place() {
	n := int64(0)
	for i := range b.spans {
		n += b.spans[i].length
	}
	if b.window == nil {
		b.window = windows.Get().(*[]byte)
	}
	if int64(cap(*b.window)) < n {
		*b.window = make([]byte, max(n, minWindow))
	}
	rest := (*b.window)[:n]
	for i := range b.spans {
		s := &b.spans[i]
		s.raw, rest = rest[:s.length:s.length], rest[s.length:]
	}
}

// waitAll reads spans that the system may not have in memory. Once a read takes long, or if reads are requests, it
// reads side by side: the next span that the system has not begun to read, and all after it. It reports whether reads
// take long.
func waitAll(spans []span, far bool) (slow bool) {
	side := far
	for i := range spans {
		if side && !spans[i].begun {
			callback.Parallel(len(spans)-i, MaxRequests, func(n int) { spans[i+n].wait() })
			return true
		}
		began := time.Now()
		spans[i].wait()
		if took := time.Since(began); took >= DeviceWait {
			slow, side = true, true
		}
	}
	return slow || far
}

// readBeside is readEach for several spans in several goroutines, each of which takes the next span.
func readBeside(spans []span, take func(r *Read)) {
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(len(spans), MaxReads) {
		readers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(spans)); i = next.Add(1) - 1 {
				spans[i].readEach(take)
			}
		})
	}
	readers.Wait()
}

// readEach reads the span if it has several values, and calls take with each.
func (s *span) readEach(take func(r *Read)) {
	if len(s.reads) > 1 {
		window := windows.Get().(*[]byte)
		defer windows.Put(window)
		*window = slices.Grow((*window)[:0], int(s.length))
		s.raw = (*window)[:s.length]
		if s.reader.ReadNow(s.raw, s.offset) == vfs.NowDone || s.reader.ReadSpan(s.raw, s.offset) == nil {
			s.finish(nil)
		}
	}
	for _, r := range s.reads {
		take(r)
	}
}

func (s *span) wait() { s.read = s.reader.ReadSpan(s.raw, s.offset) == nil }

// finish takes the values out of a span that was read. Those that were compressed are appended to plain.
func (s *span) finish(plain []byte) []byte {
	for _, r := range s.reads {
		var err error
		r.Value, plain, err = s.reader.ValueIn(s.raw, s.offset, plain, r.Key, r.Handle)
		r.Done = err == nil
	}
	return plain
}

// Count counts the records that were read.
func (b *ReadBatch) Count(c *counters.Blobs) {
	for i := range b.Reads {
		if b.Reads[i].Done {
			c.Count(b.Reads[i].Handle)
		}
	}
}

// Reset makes b ready for other values.
func (b *ReadBatch) Reset() {
	clear(b.spans)
	clear(b.sorted)
	clear(b.Reads)
	b.Reads, b.sorted, b.spans, b.plain = b.Reads[:0], b.sorted[:0], b.spans[:0], b.plain[:0]
}

// Release releases the memory of values, after Reset.
func (b *ReadBatch) Release() {
	if b.window != nil {
		if cap(*b.window) <= maxWindow {
			windows.Put(b.window)
		}
		b.window = nil
	}
	if cap(b.plain) > maxRetained {
		b.plain = nil
	}
}
