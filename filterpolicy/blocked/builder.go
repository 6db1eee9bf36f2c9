package blocked

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/collect"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/mix"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// A Builder collects hashes and turns them into a filter. It is for one goroutine
// at a time, and holds eight bytes per key until Finish.
type Builder struct {
	hashes collect.Hashes
	bits   spec.Bits
	probes int
}

// AddHash adds a key's hash. A hash equal to the one before it is free.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The
// filter of no keys says no to everything. Finish declines only when the filter
// would not fit the address space; dst is then returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	d := frame.Description{Keys: uint64(b.hashes.Len()), Params: uint32(b.probes)}
	start := len(dst)
	if d.Keys != 0 {
		if d.Units, ok = b.bits.Units(b.hashes.Len(), lineBits); !ok {
			return dst, false
		}
		dst = append(dst, make([]byte, d.Units*lineLen)...)
		for hashes := range b.hashes.Chunks() {
			fill(dst[start:], hashes, b.probes)
		}
	}
	return d.Seal(dst, start, frame.Blocked), true
}

func fill(cells []byte, hashes []uint64, probes int) {
	lines := linesOf(cells)
	first, second := min(probes, perWord), max(0, probes-perWord)
	for _, h := range hashes {
		z := mix.Round(h)
		l := &lines[mix.Reduce(z, uint64(len(lines)))]
		l.set(firstWord(z), first)
		if second != 0 {
			l.set(secondWord(z), second)
		}
	}
}
