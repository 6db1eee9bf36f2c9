package sstable

import "io"

// A pace says how large the pieces are that a pass reads.
type pace struct {
	run      int  // blocks before prefetching
	least    int  // bytes of the first piece
	growth   int  // the next piece is this many times as large
	most     int  // bytes of a piece
	foreseen int  // bytes at most of the piece of what a seek is expected to need
	double   bool // the piece after one of the most bytes is read while that one is used
}

// filePace is for local files: a system call is cheap compared with the largest piece, and a merge of many files uses
// little memory.
var filePace = pace{run: 4, least: 16 << 10, growth: 2, most: 128 << 10, foreseen: 32 << 10}

// paceOf is the pace for a file that is read in parts of part bytes; 0: not in parts. An iterator that is not
// sequential uses only foreseen of it, and has its own parts.
func paceOf(part int) pace {
	if part == 0 {
		return filePace
	}
	return pace{run: 1, least: max(part/16, 1), growth: 4, most: part, foreseen: part / 16, double: true}
}

// A readAhead serves consecutive small reads of a file out of larger ones.
type readAhead struct {
	file  io.ReaderAt
	pace  pace
	limit int64 // nothing after this offset is prefetched
	size  int   // of the last piece; the next is larger, unless foreseen is set: of the next

	foreseen bool
	buf      []byte
	start    int64  // file offset of buf
	next     *piece // the one after buf that is being read; nil: none
	spare    []byte // memory for the piece after that
	whole    []byte // the piece that buf is of, with its room; nil: none
}

// view returns n bytes, valid until the next call, or nil if they have to be read on
// their own: they are many, or something after them could not be read.
func (a *readAhead) view(offset int64, n int) []byte {
	if !a.has(offset, n) && !a.goOn(offset, n) {
		if a.foreseen {
			a.foreseen = false
		} else {
			a.size = min(max(a.pace.growth*a.size, a.pace.least), a.pace.most)
		}
		size := int(min(int64(a.size), a.limit-offset))
		if n >= size {
			return nil
		}
		if cap(a.buf) < size {
			a.buf = make([]byte, size)
		}
		a.buf, a.start, a.whole = a.buf[:size], offset, nil
		if readFull(a.file, a.buf, offset) != nil {
			a.buf = a.buf[:0]
			return nil
		}
		a.readNext()
	}
	at := int(offset - a.start)
	return a.buf[at : at+n : at+n]
}

func (a *readAhead) has(offset int64, n int) bool {
	return offset >= a.start && offset+int64(n) <= a.end()
}

func (a *readAhead) end() int64 { return a.start + int64(len(a.buf)) }

// A piece is a part of a file that is being read by a goroutine. Its buffer is not touched until done is closed. A
// readAhead that does not want it any more drops it.
type piece struct {
	start int64
	buf   []byte // the bytes come after room for the end of the piece before
	room  int
	done  chan struct{}
	err   error
}

// pieceRoom is what a piece has room for: a block that begins in the piece before, if it is of ordinary size.
const pieceRoom = 64 << 10

// readNext begins to read what comes after buf, if pieces have become so large that the pass will go on.
func (a *readAhead) readNext() {
	a.next = nil
	start := a.end()
	if !a.pace.double || a.size < a.pace.most || start >= a.limit {
		return
	}
	size := int(min(int64(a.pace.most), a.limit-start))
	p := &piece{start: start, room: pieceRoom, done: make(chan struct{})}
	if cap(a.spare) < pieceRoom+size {
		a.spare = make([]byte, pieceRoom+size)
	}
	p.buf, a.spare = a.spare[:pieceRoom+size], nil
	a.next = p
	file := a.file
	go func() {
		p.err = readFull(file, p.buf[p.room:], p.start)
		close(p.done)
	}()
}

// goOn makes the piece that is being read the one in use, with the end of the one before if n bytes at offset begin
// there. It reports false if they are not there.
func (a *readAhead) goOn(offset int64, n int) bool {
	p := a.next
	if p == nil || p.start != a.end() || offset < a.start || offset+int64(n) > p.start+int64(len(p.buf)-p.room) {
		return false
	}
	rest := int(max(p.start-offset, 0))
	if rest > p.room {
		return false
	}
	a.next = nil
	if <-p.done; p.err != nil {
		return false
	}
	copy(p.buf[p.room-rest:], a.buf[len(a.buf)-rest:])
	a.buf, a.start, a.spare, a.whole = p.buf[p.room-rest:], p.start-int64(rest), a.whole, p.buf
	a.readNext()
	return true
}

// inPieces returns r for a pass in the file's order, by one goroutine. Closing one of the two closes both.
func (r *Reader) inPieces() *Reader {
	if r.part == 0 {
		return r
	}
	other := *r
	p := paceOf(r.part)
	other.file, other.now = &pieceFile{readAhead{file: r.file, limit: r.size, pace: p, size: p.most}}, nil
	return &other
}

// A pieceFile is a file that is read in order, out of larger pieces.
type pieceFile struct{ ahead readAhead }

// ReadAt implements io.ReaderAt.
func (f *pieceFile) ReadAt(p []byte, off int64) (int, error) {
	if raw := f.ahead.view(off, len(p)); raw != nil {
		return copy(p, raw), nil
	}
	return f.ahead.file.ReadAt(p, off)
}
