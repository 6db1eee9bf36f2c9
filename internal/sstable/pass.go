package sstable

import "sync/atomic"

// A Pass is what iterators share that are merged, where reads are requests. It is used by the goroutine that moves
// them, or by several while Seeking is set.
type Pass struct {
	Budget  *Budget // nil: no bound
	Seeking bool    // its iterators are being positioned, each by a goroutine
	Iters   []*Iter // all of them

	backward bool
	read     int64        // bytes of blocks since it began
	look     int64        // value of read at which count looks at the iterators again
	ahead    atomic.Int64 // bytes of parts that are not used yet
}

// Begin begins the pass again, in a direction.
func (p *Pass) Begin(backward bool) { p.backward, p.read, p.look = backward, 0, 0 }

// count counts n bytes that i has read. When the pass has read twice as much as at the last look, it may well read as
// much again. So the other iterators that will reach the end of their block by then begin to prefetch.
func (p *Pass) count(i *Iter, n int) {
	if p.Seeking {
		return
	}
	p.read += int64(n)
	if p.look == 0 {
		p.look = int64(leastPart(i.r.part))
	}
	if p.read < p.look {
		return
	}
	p.look = 2 * p.read
	for _, other := range p.Iters {
		if other != i && other.pastHalf(p.backward) {
			other.goAhead()
		}
	}
}

// proven reports whether the pass has read enough to expect that it goes on.
func (p *Pass) proven(part int) bool { return p.read >= int64(part/provenPart) }

// provenPart: a pass that has read this fraction of a part, one in eight, is expected to go on.
const provenPart = 8

// pastHalf reports whether half of i's block has been passed.
func (i *Iter) pastHalf(backward bool) bool {
	half := len(i.block.b.entries) / 2
	if backward {
		return i.block.offset <= half
	}
	return i.block.after >= half
}

// goAhead begins the part that comes after the block that i is in, if that has to be read.
func (i *Iter) goAhead() {
	if i.r == nil || i.far == nil || i.r.part == 0 || !i.Valid() {
		return
	}
	a, pass, n := &i.far.parts, i.far.Pass, i.loc.block+1
	if a.in != nil || len(a.queue) > 0 {
		return // it goes on by itself
	}
	if a.backward = pass.backward; a.backward {
		n -= 2
	}
	if n < 0 || n >= i.r.dataCount || i.r.slots[n].Filled() {
		return
	}
	low, high := i.r.within(i.far.Lower, i.far.Upper)
	offset, length := i.r.place(i.loc)
	if a.backward {
		high = int64(offset)
	} else {
		low = int64(offset) + int64(length)
	}
	if low >= high {
		return
	}
	size := int(min(int64(a.next(i.r.part)), high-low))
	if size = pass.room(size, i.r.part, true); size > 0 {
		a.start(i.r, low, high, size, pass)
	}
}

// room returns how many bytes may be prefetched, at most size, and counts them in the budget; 0 if there is no room. An
// iterator's first part becomes smaller if there is little room, down to a sixteenth of a part.
func (p *Pass) room(size, part int, first bool) int {
	for p.ahead.Load()+int64(size) > int64(partsAhead*part) && size > leastPart(part) {
		if !first {
			return 0
		}
		size = max(size/partGrowth, leastPart(part))
	}
	if !p.Budget.Take(size) {
		return 0
	}
	return size
}

// A Budget bounds the memory for parts of files that the iterators of a store have. It is safe for concurrent use. A
// nil Budget bounds nothing.
type Budget struct {
	Limit int64   // in bytes; set before it is used
	Of    *Budget // what it counts, this one counts too, which several stores share; nil: there is none
	used  atomic.Int64
}

// Take counts n bytes, until Give. It reports false, and counts nothing, if there is no room for them.
func (b *Budget) Take(n int) bool {
	if b == nil {
		return true
	}
	if b.used.Add(int64(n)) <= b.Limit && b.Of.Take(n) {
		return true
	}
	b.used.Add(-int64(n))
	return false
}

// force counts n bytes, whether there is room or not.
func (b *Budget) force(n int) {
	if b != nil {
		b.used.Add(int64(n))
		b.Of.force(n)
	}
}

// Give gives n bytes back.
func (b *Budget) Give(n int) { b.force(-n) }

// Used returns how many bytes are counted.
func (b *Budget) Used() int64 { return b.used.Load() }

// A part is a piece of a file that is read by a goroutine. Its bytes are not touched until done is closed.
type part struct {
	r      *Reader
	start  int64
	buf    []byte
	done   chan struct{}
	err    error
	budget *Budget
	refs   atomic.Int32 // of the goroutine and of the iterator: the last releases the memory
}

// beginPart begins to read size bytes, which the budget has counted.
func beginPart(r *Reader, start int64, size int, b *Budget) *part {
	p := &part{r: r, start: start, buf: make([]byte, size), done: make(chan struct{}), budget: b}
	p.refs.Store(2)
	go func() {
		p.err = readFull(r.file, p.buf, start)
		close(p.done)
		p.release()
	}()
	return p
}

// release says that the caller does not need p any more. A nil part is none.
func (p *part) release() {
	if p != nil && p.refs.Add(-1) == 0 {
		p.budget.Give(len(p.buf))
	}
}

func (p *part) end() int64 { return p.start + int64(len(p.buf)) }

func (p *part) has(r *Reader, offset int64, n int) bool {
	return p.r.life == r.life && p.start <= offset && offset+int64(n) <= p.end()
}

// cut returns n bytes, all of which p has.
func (p *part) cut(offset int64, n int) []byte {
	at := int(offset - p.start)
	return p.buf[at : at+n : at+n]
}
