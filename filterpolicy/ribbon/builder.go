package ribbon

import (
	"encoding/binary"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// Bounds of a build.
const (
	maxAttempts = 10
	maxLayers   = 8
	maxKeys     = 1 << 37 // whose blocks a u32 can count
)

// lastKeys is the number of keys at which a layer is the last: it then has slots for all of them, and some in reserve.
const lastKeys = 500

// lastReserve is the reserve of the last layer: one slot for this many keys.
const lastReserve = 16

// A Builder collects hashes and turns them into a filter. It is for one goroutine at a time. It
// holds eight bytes per key until Finish, which takes 22 more while it runs, besides the filter.
type Builder struct {
	hashes hash64.List
	width  width
}

// AddHash adds a key's hash. A hash equal to the one before it is free; any
// other duplicate costs time in Finish but no space in the filter.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The filter of no keys
// says no to everything. Finish declines when no attempt succeeds, which takes hashes made to that
// end, or when the filter would not fit the address space; dst is then returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	d := frame.Description{Keys: uint64(b.hashes.Len()), Params: uint32(b.width.columns)}
	start := len(dst)
	if d.Keys == 0 {
		return d.Seal(dst, start, frame.Ribbon), true
	}
	if d.Keys > maxKeys {
		return dst, false
	}
	var equations system
	for attempt := range maxAttempts {
		seed := hash64.Seed(&b.hashes, attempt)
		keys := hash64.Distinct(&b.hashes, seed)
		data, layers, ok := b.width.build(dst, keys, &equations)
		if !ok {
			continue
		}
		d.Seed, d.Params = seed, d.Params|uint32(len(layers))<<8
		for _, l := range layers {
			d.Units += l.blocks
			data = binary.LittleEndian.AppendUint64(data, l.entry())
		}
		return d.Seal(data, start, frame.Ribbon), true
	}
	return dst, false
}

// build appends the layers of distinct keys, which are in ascending order and are
// overwritten, and returns their shapes. False means that the last layer has no solution.
func (w width) build(dst []byte, keys []uint64, equations *system) (data []byte, layers []shape, ok bool) {
	for {
		last := isLast(len(keys), len(layers))
		s := w.shapeFor(uint64(len(keys)), last)
		words, thresholds := s.size(last)
		start := len(dst)
		dst = append(dst, make([]byte, words+thresholds)...)
		l := layer{s, dst[start : start+int(words)], dst[start+int(words):]}
		equations.reset(s.blocks)
		keys = equations.fill(&l, keys)
		if last && len(keys) != 0 {
			return nil, nil, false
		}
		equations.solve(&l)
		layers = append(layers, s)
		if last {
			return dst, layers, true
		}
		for i, z := range keys {
			keys[i] = deeper(z)
		}
		slices.Sort(keys)
	}
}

// isLast reports whether a layer of that many keys, after that many other layers, is the last.
func isLast(keys, layers int) bool { return keys <= lastKeys || layers == maxLayers-1 }

// A width is the bits of a filter, spread over columns.
type width struct {
	columns uint64
	share   uint64 // how many of a thousand blocks have one column more
}

func widthOf(b spec.Bits) width { return width{uint64(b / spec.One), uint64(b % spec.One)} }

// shapeFor returns the shape of a layer of n keys. Each layer but the last has a twentieth fewer slots than keys, which
// leaves hardly a slot unused. The last has enough to make a contradiction unlikely.
//
// An equation has the columns of its first block, so that the narrow share is that of all blocks but the last.
func (w width) shapeFor(n uint64, last bool) shape {
	slots := n - n/20
	if last {
		slots = n + n/lastReserve + blockLen/4
	}
	blocks := max(minBlocks, (slots+blockLen-1)/blockLen)
	if w.share == 0 {
		return shape{w.columns, blocks, blocks}
	}
	return shape{w.columns, blocks, (blocks - 1) * (uint64(spec.One) - w.share) / uint64(spec.One)}
}
