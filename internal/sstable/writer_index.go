package sstable

import (
	"bytes"

	"github.com/siftkv/siftkv/blockindex"
	"github.com/siftkv/siftkv/internal/base"
)

const (
	// leafSize is the size of an index leaf that a writer aims at, in bytes: a few blocks. So an uncached leaf costs
	// little more than its block, and a cache that holds blocks holds leaves.
	leafSize = 16 << 10
	// A leaf larger than maxLeafSize is cut again: separators have become longer since the leaves were measured.
	maxLeafSize = 4 * leafSize
	// hugeLeafSize is the size up to which a leaf is left alone if to cut all leaves again
	// would make the top index, which every reader of the file holds, larger than the leaf.
	hugeLeafSize = 1 << 20
	// A common prefix of all separators of a leaf counts if it has at least longCommon bytes: a leaf has it once, so
	// more blocks in a leaf make the index smaller.
	longCommon = 64
)

// An indexWriter collects the separators of a file: in one piece, or in leaves if they are large. Every leaf but the
// last has the same number of blocks: a reader finds the leaf of a block by division. So the leaf with the longest
// separators decides that number. If one becomes too large, all are cut again, into halves at least.
type indexWriter struct {
	partition int // bytes; an index of at least this size is cut
	first     int // blocks that made the first leaf

	leaf    blockindex.Builder // that is being built
	next    int                // number of its first block
	end     uint64             // file offset after the last block
	common  []byte             // what the separators of the leaf begin with
	perLeaf int                // blocks; 0: not cut
	leaves  [][]byte           // encoded
	bytes   int                // of leaves
	largest int                // of leaves
	longest int                // of separators
}

// add adds the next block, with its separator and the file offset after it.
func (w *indexWriter) add(separator []byte, end uint64) {
	w.longest = max(w.longest, len(separator))
	w.addToLeaf(separator, end)
	if w.perLeaf > 0 {
		w.recutIfTooLarge()
		return
	}
	if size := w.leafSize() - w.longCommon(); w.first == 0 && size >= min(w.partition, leafSize) {
		w.first = w.leaf.Len()
	}
	if w.leafSize() >= w.partition {
		if w.first == 0 {
			w.first = w.leaf.Len()
		}
		w.recut(w.first)
		w.recutIfTooLarge()
	}
}

func (w *indexWriter) addToLeaf(separator []byte, end uint64) {
	if w.leaf.Len() == 0 {
		w.common = append(w.common[:0], separator...)
	} else {
		w.common = w.common[:base.CommonPrefix(w.common, separator)]
	}
	w.leaf.Add(separator, end)
	w.end = end
	if w.leaf.Len() == w.perLeaf {
		w.closeLeaf()
	}
}

// closeLeaf makes a leaf of the blocks since the last.
func (w *indexWriter) closeLeaf() {
	leaf := w.leaf.Append(nil)
	w.leaves = append(w.leaves, leaf)
	w.bytes += len(leaf)
	w.largest = max(w.largest, len(leaf))
	w.next += w.leaf.Len()
	w.leaf.Reset(w.next, w.end)
}

// recutIfTooLarge cuts all leaves again until none is too large. A leaf of few blocks with huge separators is left
// alone: to cut all others for it would only move their separators to the top.
func (w *indexWriter) recutIfTooLarge() {
	for w.largest > max(maxLeafSize, 2*w.longest) && w.perLeaf > 1 {
		top := w.size() / (w.perLeaf / 2) // as it would be, with one block of each leaf
		if top > w.largest && w.largest <= hugeLeafSize {
			return
		}
		w.recut(w.perLeaf / 2)
	}
}

// recut makes leaves of n blocks of all that was added.
func (w *indexWriter) recut(n int) {
	if w.leaf.Len() > 0 {
		w.closeLeaf()
	}
	old := w.leaves
	w.leaves, w.bytes, w.largest, w.perLeaf = nil, 0, 0, n
	w.next, w.end = 0, 0
	w.leaf.Reset(0, 0)
	var separator []byte
	for _, data := range old {
		x := blockindex.View(data)
		for i := range x.Len() {
			separator = x.AppendSeparator(separator[:0], i)
			offset, length := x.Block(i)
			w.addToLeaf(separator, offset+uint64(length))
		}
	}
}

// finish closes the last leaf, if there are leaves.
func (w *indexWriter) finish() {
	for w.perLeaf > 0 && w.leaf.Len() > 0 {
		w.closeLeaf()
		w.recutIfTooLarge()
	}
}

// size returns about how many bytes the index has.
func (w *indexWriter) size() int { return w.bytes + w.leafSize() }

// leafSize returns about how many bytes the leaf has that is being built.
func (w *indexWriter) leafSize() int { return w.leaf.Size() - max(w.leaf.Len()-1, 0)*w.longCommon() }

// longCommon returns the length of what the separators of the leaf begin with; 0 if it is short.
func (w *indexWriter) longCommon() int {
	if len(w.common) < longCommon {
		return 0
	}
	return len(w.common)
}

// appendLast appends to dst the separator after the last block; last is that block's last key. The separator is short,
// but has the leaf's common prefix if that is long.
func (w *indexWriter) appendLast(dst, last []byte) []byte {
	if w.leaf.Len() > 0 && w.longCommon() > 0 && bytes.HasPrefix(last, w.common) {
		n := len(w.common)
		return blockindex.AppendSeparator(append(dst, last[:n]...), last[n:], nil)
	}
	return blockindex.AppendSeparator(dst, last, nil)
}
