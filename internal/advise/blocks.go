package advise

import (
	"math"
	"slices"
)

// blockFactors are the sizes of data blocks that are tried, as multiples of the store's, and usualBlocks their limits.
var (
	blockFactors = []float64{0.25, 0.5, 2, 4}
	usualBlocks  = [2]int64{1 << 10, 64 << 10}
)

// blockSizes returns the sizes of data blocks that are tried: none if files do not say theirs.
func (s *Store) blockSizes() (sizes []int64) {
	for _, f := range blockFactors {
		size := int64(f * float64(s.BlockSize))
		if size >= usualBlocks[0] && size <= usualBlocks[1] {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// withBlocks returns the model of the store with data blocks of a size. Blocks are divided evenly, or neighbours are
// joined.
func (m *Model) withBlocks(size int64) *Model {
	m.once.Do(func() { m.places = findPlaces(m.trace) })
	s, t := *m.store, *m.trace
	s.Files = slices.Clone(s.Files)
	cuts := make([]blockCut, len(s.Files))
	for i := range s.Files {
		cuts[i] = s.Files[i].cut(size)
	}
	t.Keys = slices.Clone(t.Keys)
	for i := range t.Keys {
		k := &t.Keys[i]
		k.Path = slices.Clone(k.Path)
		for n := range k.Path {
			step := &k.Path[n]
			c := cuts[step.File]
			step.Block = c.block(step.Block, placed(m.places.keys, i, n))
			step.Decoded, step.Stored = c.bytes(step.Decoded), c.bytes(step.Stored)
		}
	}
	runs, all := m.store.runKeys(), float64(max(1, m.store.Keys()))
	t.Scans = slices.Clone(t.Scans)
	for i := range t.Scans {
		scan := &t.Scans[i]
		scan.Parts = slices.Clone(scan.Parts)
		for n := range scan.Parts {
			p := &scan.Parts[n]
			was := &m.store.Files[p.File]
			here := float64(scan.Entries) * float64(runs[was.Run]) / all
			cuts[p.File].part(p, here, was, placed(m.places.scans, i, n))
		}
	}
	resized := newModel(&s, &t, m.prices.blocks(s.BlockSize, size), m.most)
	resized.blockSize, resized.moreIndex = size, s.indexBytes()-m.store.indexBytes()
	return resized
}

// A blockCut says how blocks of a file become blocks of another size: each is divided into parts parts, or joined
// blocks become one. One of the two is 1.
type blockCut struct{ parts, joined int32 }

// cut changes a file to have data blocks of a size, as far as its entries allow it.
func (f *File) cut(size int64) blockCut {
	if f.BlockSize <= 0 || f.Blocks == 0 || size <= 0 {
		return blockCut{1, 1}
	}
	c := blockCut{1, 1}
	if x := float64(f.BlockSize) / float64(size); x >= 1 {
		c.parts = int32(min(math.Round(x), max(1, math.Floor(float64(f.Keys)/float64(f.Blocks)))))
	} else {
		c.joined = int32(min(math.Round(1/x), float64(f.Blocks)))
	}
	change := float64(c.parts) / float64(c.joined)
	f.Blocks = uint64(math.Ceil(float64(f.Blocks) * change))
	f.Decoded = int64(float64(f.Decoded) / change)
	f.IndexBytes = int64(float64(f.IndexBytes) * change)
	f.BlockSize = size
	return c
}

// block returns the block of what was at a place of another.
func (c blockCut) block(was int32, place float64) int32 {
	return was/c.joined*c.parts + min(int32(place*float64(c.parts)), c.parts-1)
}

func (c blockCut) bytes(was int32) int32 { return was / c.parts * c.joined }

// part changes a scan's part p in a file; was is the file before, and entries is how many entries the scan reads there.
func (c blockCut) part(p *Part, entries float64, was *File, place float64) {
	first, last := p.First/c.joined, (p.First+p.Blocks-1)/c.joined
	p.First = c.block(p.First, place)
	if p.Blocks = last - first + 1; c.parts == 1 || p.Empty {
		return
	}
	// It begins somewhere in the first block: what the entries take, and no less than the blocks between the ends.
	perBlock := float64(was.Keys) / float64(max(1, was.Blocks))
	length := min(max(entries/max(1, perBlock), float64(p.Blocks-1)), float64(p.Blocks))
	p.Blocks = min(int32(length*float64(c.parts))+1, p.Blocks*c.parts)
	p.First = min(p.First, int32(was.Blocks)*c.parts-p.Blocks)
}

func (s *Store) indexBytes() (sum int64) {
	for i := range s.Files {
		sum += s.Files[i].IndexBytes
	}
	return sum
}
