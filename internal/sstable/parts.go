package sstable

import (
	"runtime"
	"slices"
)

// How an iterator reads a remote file, where a request takes as long as transferring megabytes. A seek reads a block,
// or what it foresees; the next block comes out of a part of a sixteenth of the size, then one of a quarter, then whole
// parts. While the second part is used, one more is under way, then two, then four (partsAhead), or up to twice as many
// if files end before. After the end of the file come parts of the next file of its run. So a long scan runs at the
// speed of the line. Backward it is the same.
//
// Merged iterators are one Pass, and do not wait for their parts one after the other. Whenever the pass has read twice
// as much as before, a sixteenth of a part at first, each iterator past the half of its block begins to prefetch. After
// an eighth of a part, each iterator that uses a part has the next one under way.
//
// A pass that is closed early has requested in vain what was under way. That is up to four parts, in up to eight
// requests, and a sixteenth of a part in each other file of which it has used half a block.

// partsAhead is how many parts a pass has under way in addition to those that are used.
const partsAhead = 4

// A Far is what an iterator needs to prefetch remote files. It belongs to one iterator.
type Far struct {
	Pass *Pass

	// Following returns the reader of the file n after the iterator's, or before it if n is negative. It returns nil if
	// there is none, or the pass may not reach it. Nil: there is no other file.
	Following func(n int) *Reader

	Lower, Upper []byte // nothing is wanted outside; nil: no bound

	parts parts
}

// Share gives i what it needs to prefetch together with others. Init and Release keep it.
func (i *Iter) Share(f *Far) { i.far = f }

// parts are those of one iterator.
type parts struct {
	in       *part
	queue    []*part // not used yet, in the order of the pass; each goes on where the one before ends
	backward bool
	size     int    // of the last one that was begun; 0: none
	used     int    // how many were
	join     []byte // a block that is in two of them
}

// initFar makes i ready for a file of which reads are requests, after one that it went through in a direction.
func (i *Iter) initFar(backward bool) {
	if i.sequential {
		return
	}
	if i.far == nil {
		i.far = &Far{Pass: &Pass{}}
	}
	if i.run.backward = backward; backward {
		i.run.next = i.r.dataCount + 1
	}
	i.far.parts.enter(i.r, i.far.Pass)
}

// addFar counts a block that has to be read: what it begins, if it goes on with nothing, is foreseen.
func (i *Iter) addFar(loc location, key []byte) {
	if i.run.addFar(loc.block, key != nil); i.run.blocks > 1 {
		return
	}
	a := &i.far.parts
	offset, length := i.r.place(loc)
	if a.holds(i.r, int64(offset), length) {
		i.run.blocks, i.run.backward = 2, a.backward
		return
	}
	a.reset(i.far.Pass)
	i.ahead.size = i.foreseen(loc, key)
}

// inParts reports whether n bytes are to come out of parts, and not out of what was foreseen.
func (i *Iter) inParts(offset int64, n int) bool {
	return i.r.part > 0 && !i.sequential && !i.ahead.foreseen && !i.ahead.has(offset, n)
}

// view returns n bytes of i's file, valid until the next call, or nil if they have to be read on their own: they are
// many, or what is around them could not be read.
func (a *parts) view(i *Iter, offset int64, n int) []byte {
	if a.backward != i.run.backward {
		a.drop(i.far.Pass)
		a.backward = i.run.backward
	}
	for {
		if a.in != nil && a.in.has(i.r, offset, n) {
			if <-a.in.done; a.in.err != nil {
				a.reset(i.far.Pass)
				return nil
			}
			return a.in.cut(offset, n)
		}
		if a.reach(i.r, offset, n) {
			if b, ok := a.joined(i, offset, n); ok {
				return b
			}
			a.use(i)
			continue
		}
		a.drop(i.far.Pass)
		if !a.begin(i, offset, n) {
			return nil
		}
		a.use(i)
	}
}

// holds reports whether n bytes are in a part.
func (a *parts) holds(r *Reader, offset int64, n int) bool {
	return a.in != nil && a.in.has(r, offset, n) || a.reach(r, offset, n)
}

// reach reports whether all of n bytes are in the queue, or begin in the part that is in use.
func (a *parts) reach(r *Reader, offset int64, n int) bool {
	if len(a.queue) == 0 || a.queue[0].r.life != r.life {
		return false
	}
	first := a.queue[0]
	if in := a.in; in != nil && in.r.life == r.life {
		first = in
	}
	last := a.queue[0]
	for _, p := range a.queue[1:] {
		if p.r.life == r.life {
			last = p
		}
	}
	if a.backward {
		first, last = last, first
	}
	return first.start <= offset && offset+int64(n) <= last.end()
}

// joined returns n bytes of which the part in use has some, and the next one the others. It goes on to that. It reports
// false if they are elsewhere.
func (a *parts) joined(i *Iter, offset int64, n int) (b []byte, ok bool) {
	low, high, end := a.in, a.queue[0], offset+int64(n)
	if a.backward {
		low, high = high, low
	}
	if a.in == nil || a.in.r.life != i.r.life || high.start <= offset || end <= high.start ||
		offset < low.start || end > high.end() {
		return nil, false
	}
	<-low.done
	if <-high.done; low.err != nil || high.err != nil {
		a.reset(i.far.Pass)
		return nil, true
	}
	split := int(high.start - offset)
	a.join = append(append(a.join[:0], low.cut(offset, split)...), high.cut(high.start, n-split)...)
	a.use(i)
	return a.join, true
}

// use moves to the first part of the queue, and begins those that should be under way meanwhile.
func (a *parts) use(i *Iter) {
	a.in.release()
	a.in = a.queue[0]
	a.queue = slices.Delete(a.queue, 0, 1)
	i.far.Pass.ahead.Add(-int64(len(a.in.buf)))
	a.used++
	a.fill(i)
}

// drop forgets all parts. What is under way ends by itself.
func (a *parts) drop(pass *Pass) {
	a.in.release()
	a.in = nil
	for _, p := range a.queue {
		pass.ahead.Add(-int64(len(p.buf)))
		p.release()
	}
	clear(a.queue)
	a.queue = a.queue[:0]
}

// reset is drop for a pass that begins again.
func (a *parts) reset(pass *Pass) {
	a.drop(pass)
	a.size, a.used = 0, 0
}

// enter drops what is of no use in a file that the iterator goes on to.
func (a *parts) enter(r *Reader, pass *Pass) {
	if a.in != nil && a.in.r.life != r.life {
		a.in.release()
		a.in = nil
	}
	for len(a.queue) > 0 && a.queue[0].r.life != r.life {
		pass.ahead.Add(-int64(len(a.queue[0].buf)))
		a.queue[0].release()
		a.queue = slices.Delete(a.queue, 0, 1)
	}
}

// begin begins the part in which the pass goes on with n bytes at an offset of i's file. It reports false if that is no
// more than those.
func (a *parts) begin(i *Iter, offset int64, n int) bool {
	low, high := i.r.within(i.far.Lower, i.far.Upper)
	if a.backward {
		high = offset + int64(n)
	} else {
		low = offset
	}
	size := a.next(i.r.part)
	if high-low <= int64(n) || size <= n {
		a.size = size
		return false
	}
	pass := i.far.Pass
	for !pass.Budget.Take(size) {
		if size <= leastPart(i.r.part) {
			pass.Budget.force(size) // it is waited for, and stays small
			break
		}
		size /= partGrowth
	}
	if size = a.cut(low, high, size, pass.Budget); size <= n {
		pass.Budget.Give(size)
		return false
	}
	a.start(i.r, low, high, size, pass)
	return true
}

// cut returns how much of size bytes, which the budget has counted, there is between two offsets.
func (a *parts) cut(low, high int64, size int, b *Budget) int {
	if rest := high - low; rest < int64(size) {
		b.Give(size - int(rest))
		return int(rest)
	}
	return size
}

// start begins a part of size bytes, from the low end or, backward, up to the high one.
func (a *parts) start(r *Reader, low, high int64, size int, pass *Pass) {
	if a.backward {
		low = high - int64(size)
	}
	pass.ahead.Add(int64(size))
	a.queue = append(a.queue, beginPart(r, low, size, pass.Budget))
}

// fill begins parts until enough are under way.
func (a *parts) fill(i *Iter) {
	f := i.far
	depth := [...]int{0, 0, 1, 2, partsAhead}[min(a.used, 4)]
	if f.Pass.proven(i.r.part) {
		depth = max(depth, 1)
	}
	for bytes := a.queued(); bytes < depth*i.r.part && len(a.queue) < 2*depth; {
		last := a.in
		if n := len(a.queue); n > 0 {
			last = a.queue[n-1]
		}
		r := last.r
		low, high := r.within(f.Lower, f.Upper)
		if a.backward {
			high = last.start
		} else {
			low = last.end()
		}
		if low >= high {
			if r = a.following(i); r == nil {
				return
			}
			if low, high = r.within(f.Lower, f.Upper); low >= high {
				return
			}
		}
		size := int(min(int64(a.next(r.part)), high-low))
		if size = f.Pass.room(size, r.part, len(a.queue) == 0); size == 0 {
			return
		}
		a.start(r, low, high, size, f.Pass)
		bytes = a.queued()
	}
}

// queued returns how many bytes are under way, or not used yet.
func (a *parts) queued() (n int) {
	for _, p := range a.queue {
		n += len(p.buf)
	}
	return n
}

// following returns the file after the one of the last part.
func (a *parts) following(i *Iter) *Reader {
	if i.far.Following == nil {
		return nil
	}
	files, life := 1, i.r.life
	for _, p := range a.queue {
		if p.r.life != life {
			files, life = files+1, p.r.life
		}
	}
	if a.backward {
		files = -files
	}
	return i.far.Following(files)
}

const partGrowth = 4

// leastPart is the size of the first part of a pass.
func leastPart(part int) int { return max(part/16, 1) }

// next returns the size of the next part.
func (a *parts) next(part int) int {
	a.size = min(max(partGrowth*a.size, leastPart(part)), part)
	return a.size
}

// within returns the file range of the blocks that may have keys of [lower, upper), as far as the index in memory
// tells.
func (r *Reader) within(lower, upper []byte) (low, high int64) {
	high = int64(r.props.DataBytes)
	if r.leafBlocks > 0 {
		return 0, high
	}
	if lower != nil {
		if n := r.index.Find(lower); n < r.dataCount {
			offset, _ := r.place(location{block: n})
			low = int64(offset)
		}
	}
	if upper != nil {
		if n := r.index.Find(upper); n < r.dataCount {
			offset, length := r.place(location{block: n})
			high = int64(offset) + int64(length)
		}
	}
	runtime.KeepAlive(r)
	return low, high
}
