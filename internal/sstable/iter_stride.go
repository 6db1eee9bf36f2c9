package sstable

// A stride is how far an iterator goes after it has sought a key: scans that follow each other are
// often of one length. Distances are in 256ths of a block.
type stride struct {
	mean   int // of those before
	under  bool
	begin  int // in the first block
	blocks int // passed

	last  uint64 // the slotKey of the block in which the one before ended
	pages bool   // this one began where the one before ended: the last block of each is read again
}

// maxStride bounds the mean: a pass over everything says little about what comes after it.
const maxStride = 16 << 8

// start begins one at an offset of a block.
func (w *stride) start(offset, size int) { w.under, w.blocks, w.begin = true, 0, portion(offset, size) }

// endStride ends the one that is under way, if there is one.
func (i *Iter) endStride() {
	if w := &i.stride; w.under {
		w.under, w.last = false, i.r.slotKey(i.loc.block)
		gone := w.blocks<<8 + portion(i.block.after, len(i.block.b.entries)) - w.begin
		w.mean = (w.mean + min(max(gone, 0), maxStride) + 1) / 2
	}
}

func portion(offset, size int) int { return offset << 8 / max(size, 1) }

// foreseen returns the size of the piece of the file that is read for a scan that begins in the
// block at loc, where key is looked for: 0 for a block alone.
func (i *Iter) foreseen(loc location, key []byte) int {
	i.ahead.foreseen = false
	if key == nil || i.r.leafBlocks > 0 || i.stride.mean == 0 {
		return 0
	}
	last := loc.block + (max(i.r.index.Part(loc.block, key), 0)+i.stride.mean)>>8
	end := loc.block
	for end < last && end+1 < i.r.dataCount && !i.r.slots[end+1].Filled() {
		end++
	}
	if end == loc.block {
		return 0
	}
	offset, _ := i.r.place(loc)
	at, length := i.r.index.Block(end)
	size := int(at-offset) + length
	if size > i.ahead.pace.foreseen {
		return 0
	}
	i.ahead.foreseen = true
	return size
}
