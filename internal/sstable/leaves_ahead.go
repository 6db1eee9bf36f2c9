package sstable

import (
	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/compression"
)

// leafPiece is how many bytes of index leaves a pass reads at a time from a file that is read in parts. A few hundred
// blocks have four kilobytes of leaves, so a piece serves many parts of data.
const leafPiece = 256 << 10

// leavesAhead reads the index leaves of a pass over a file that is read in parts, where each would be a request.
type leavesAhead struct {
	pieces readAhead
	last   int // the leaf that was needed last
	on     bool
}

// init makes a ready for a pass over r.
func (a *leavesAhead) init(r *Reader) {
	if r.part == 0 || r.leafBlocks == 0 {
		*a = leavesAhead{}
		return
	}
	piece := min(leafPiece, r.part)
	*a = leavesAhead{on: true, last: -1, pieces: readAhead{file: r.file, limit: int64(r.index.End()),
		pace: pace{least: piece, growth: 1, most: piece}}}
}

// follows reports whether leaf i of r should be read together with those after it: it follows the leaf before, and is
// not cached.
func (a *leavesAhead) follows(r *Reader, i int) bool {
	if !a.on {
		return false
	}
	follows := i == a.last+1
	a.last = i
	return follows && !r.slots[r.dataCount+i].Filled()
}

// leafAhead reads leaf i out of a larger piece of the file, into memory of its own. It is put into the cache too if
// fill is set.
func (r *Reader) leafAhead(i int, fill bool, a *leavesAhead, p *Probe) (blockindex.Index, error) {
	offset, length := r.index.Block(i)
	var stored []byte
	var c Compression
	err := ErrClosed
	if raw := a.pieces.view(int64(offset), length); raw != nil && !r.closed.Load() {
		stored, c, err = r.stored(raw, indexLeaf, offset)
	}
	if err != nil {
		stored, c, err = r.readStored(new([]byte), indexLeaf, offset, length, p)
	}
	if err != nil {
		return blockindex.Index{}, err
	}
	data, err := compression.Decompress(nil, stored, c)
	if err == nil {
		err = indexLeaf.check(data)
	}
	if err != nil {
		return blockindex.Index{}, r.corrupt(int64(offset), indexLeaf.String(), err)
	}
	p.countRead(indexLeaf, length, len(data))
	if fill {
		if h, ok := r.insert(r.dataCount+i, data, false); ok {
			h.release()
		}
	}
	return r.viewLeaf(i, data)
}
