package kv

import (
	"cmp"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/blob"
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

// An apartRead is a value to read.
type apartRead struct {
	key    []byte
	handle blob.Handle
	value  []byte
	done   bool      // else it must be read alone
	late   bool      // it is read alone, when it is needed
	of     *multiKey // the key that has the value, in a MultiGet
}

// compareApart orders values by file and offset.
func compareApart(a, b *apartRead) int {
	if a.handle.File != b.handle.File {
		return cmp.Compare(a.handle.File, b.handle.File)
	}
	return cmp.Compare(a.handle.Offset, b.handle.Offset)
}

// An apartSpan is a part of a file with the records of one or several values.
type apartSpan struct {
	reader *blob.Reader // nil: of one value, which can only be read alone
	offset int64
	length int64
	reads  []*apartRead
	raw    []byte
	begun  bool // the system was asked for it, and reads
	read   bool
}

// takes reports whether the record of a handle is read together with those of the span. In the same file, it must be
// at or behind the last one's offset.
func (s *apartSpan) takes(h blob.Handle) bool {
	last := s.reads[len(s.reads)-1].handle
	gap := h.Offset - (s.offset + s.length)
	return s.reader != nil && last.File == h.File && gap <= maxGap && gap <= h.Length && h.Length <= maxJoined/2 &&
		last.Length <= maxJoined/2 && s.length+gap+h.Length <= maxJoined
}

// spansOf appends to spans those of the given values, which are sorted by compareApart.
func (d *DB) spansOf(spans []apartSpan, v *version.Version, sorted []*apartRead) []apartSpan {
	for n, r := range sorted {
		if l := len(spans) - 1; l >= 0 && spans[l].takes(r.handle) && spans[l].reader.Admits(r.handle) {
			s := &spans[l]
			s.reads = sorted[n-len(s.reads) : n+1]
			s.length = max(s.length, r.handle.Offset+r.handle.Length-s.offset)
			continue
		}
		s := apartSpan{reads: sorted[n : n+1]}
		if reader, err := d.values.Reader(v, r.handle.File); err == nil && reader.Admits(r.handle) {
			s.reader, s.offset, s.length = reader, r.handle.Offset, r.handle.Length
		}
		spans = append(spans, s)
	}
	return spans
}

// An apartReads reads values together, into memory of its own.
type apartReads struct {
	list   []apartRead
	sorted []*apartRead
	spans  []apartSpan
	window *[]byte // of windows; nil: none yet
	plain  []byte  // values that were compressed
}

func (a *apartReads) add(h blob.Handle) { a.list = append(a.list, apartRead{handle: h}) }

// addLate adds a value that is not read with the others.
func (a *apartReads) addLate(h blob.Handle) {
	a.list = append(a.list, apartRead{handle: h, late: true})
}

// read reads all values, whose keys must be set, except late ones. It reports whether reads take long (see wait).
func (a *apartReads) read(d *DB, v *version.Version) (waited bool) {
	a.sort()
	a.spans = d.spansOf(a.spans, v, a.sorted)
	a.place()
	left := 0 // spans that have to be waited for
	for i := range a.spans {
		s := &a.spans[i]
		if s.reader == nil {
			continue
		}
		now := s.reader.ReadNow(s.raw, s.offset)
		if now == vfs.NowDone {
			a.plain = s.finish(a.plain)
			continue
		}
		s.begun = now == vfs.NowBegun
		a.spans[left], a.spans[i] = a.spans[i], a.spans[left]
		left++
	}
	waited = a.wait(a.spans[:left], d.tables.Far)
	for i := range a.spans[:left] {
		if s := &a.spans[i]; s.read {
			a.plain = s.finish(a.plain)
		}
	}
	return waited
}

// sort sets sorted to the values of list in file order, except late ones.
func (a *apartReads) sort() {
	for i := range a.list {
		if !a.list[i].late {
			a.sorted = append(a.sorted, &a.list[i])
		}
	}
	slices.SortFunc(a.sorted, compareApart)
}

// place gives each span its part of the window.
func (a *apartReads) place() {
	n := int64(0)
	for i := range a.spans {
		n += a.spans[i].length
	}
	if a.window == nil {
		a.window = windows.Get().(*[]byte)
	}
	if int64(cap(*a.window)) < n {
		*a.window = make([]byte, max(n, nowOn))
	}
	rest := (*a.window)[:n]
	for i := range a.spans {
		s := &a.spans[i]
		s.raw, rest = rest[:s.length:s.length], rest[s.length:]
	}
}

// wait reads spans that the system may not have in memory. Once a read takes long, or if reads are requests, it reads
// side by side: the next span that the system has not begun to read, and all after it. It reports whether reads take
// long, as requests always do.
func (a *apartReads) wait(spans []apartSpan, far bool) (slow bool) {
	side := far
	for i := range spans {
		if side && !spans[i].begun {
			sideBySide(len(spans)-i, func(n int) { spans[i+n].wait() })
			return true
		}
		began := time.Now()
		spans[i].wait()
		if took := time.Since(began); took >= deviceWait {
			slow, side = true, true
		}
	}
	return slow || far
}

// wait reads the span.
func (s *apartSpan) wait() { s.read = s.reader.ReadSpan(s.raw, s.offset) == nil }

// finish takes the values out of a span that was read. Those that were compressed are appended to plain.
func (s *apartSpan) finish(plain []byte) []byte {
	for _, r := range s.reads {
		var err error
		r.value, plain, err = s.reader.ValueIn(s.raw, s.offset, plain, r.key, r.handle)
		r.done = err == nil
	}
	return plain
}

// count counts the records that were read.
func (a *apartReads) count(c *counters.Blobs) {
	for i := range a.list {
		if a.list[i].done {
			c.Count(a.list[i].handle)
		}
	}
}

// reset makes a ready for other values.
func (a *apartReads) reset() {
	clear(a.spans)
	clear(a.sorted)
	clear(a.list)
	a.list, a.sorted, a.spans, a.plain = a.list[:0], a.sorted[:0], a.spans[:0], a.plain[:0]
}

// release releases the memory of values.
func (a *apartReads) release() {
	if a.window != nil {
		if cap(*a.window) <= waitOn {
			windows.Put(a.window)
		}
		a.window = nil
	}
	if cap(a.plain) > maxRetainedScratch {
		a.plain = nil
	}
}
