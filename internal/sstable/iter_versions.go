package sstable

import (
	"errors"

	"github.com/siftkv/siftkv/internal/base"
)

// A key that is written again and again while snapshots are open has versions in many blocks. The index knows no
// versions, but where the first and the last of a key's blocks are: what is between is bisected.

// pastBlock moves to the first entry at or after k, which is after all of i's block, the first that
// may hold k's versions. It takes O(log n) of n blocks with versions of the key.
func (i *Iter) pastBlock(k base.InternalKey) bool {
	if i.atEdge(1) {
		i.block.valid = false
		return false
	}
	if !i.openBlock(i.loc.block + 1) {
		return false
	}
	if i.settle(i.block.seekGE(k)) || i.err != nil {
		return i.err == nil
	}
	before := i.loc.block // k is after all of it
	last, err := i.lastBlockOf(k.User)
	if err != nil {
		return i.fail(err)
	}
	// A seek past all versions ends in the last block, or at its beginning.
	for tries := 0; before < last; tries++ {
		probe := last
		if tries >= 2 {
			probe = before + (last-before+1)/2
		}
		if !i.openBlock(probe) {
			return false
		}
		if i.settle(i.block.first()) && base.Compare(i.block.key(), k) >= 0 {
			last = probe - 1
			continue
		}
		if i.err != nil {
			return false
		}
		if i.settle(i.block.seekGE(k)) || i.err != nil {
			return i.err == nil
		}
		before = probe
	}
	if !i.openBlock(before+1) || !i.settle(i.block.first()) {
		return false
	}
	if base.Compare(i.block.key(), k) < 0 { // a caller that seeks again until it is at k would never end
		offset, _ := i.r.place(i.loc)
		return i.fail(i.r.corrupt(int64(offset), dataBlock.String(), errSeparators))
	}
	return true
}

var errSeparators = errors.New("the index says that a key ends before it does")

// lastBlockOf returns the last data block that may hold versions of a key.
func (i *Iter) lastBlockOf(user []byte) (int, error) {
	i.separator = append(append(i.separator[:0], user...), 0) // the key that follows
	loc, ok, err := i.r.locate(i.separator, !i.sequential, &i.memo, &i.Probe)
	if !ok {
		return i.r.dataCount - 1, err
	}
	return loc.block, err
}
