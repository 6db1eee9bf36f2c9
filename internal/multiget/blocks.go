package multiget

import (
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/values"
)

// A block is a data block or a part of an index that must be read, with the probes that need it.
type block struct {
	reader  *sstable.Reader
	probes  []*probe
	lookups []*sstable.Lookup // of probes
}

// group makes s.blocks of what unread probes need, in the order of the files. Number returns the number of a probe's
// block; it reports false if the probe needs none.
func (s *Search) group(number func(p *probe) (n int, ok bool)) {
	s.probes, s.lookups, s.blocks = s.probes[:0], s.lookups[:0], s.blocks[:0]
	for _, p := range s.unread {
		if n, ok := number(p); ok {
			p.number = n
			s.probes = append(s.probes, p)
		}
	}
	slices.SortFunc(s.probes, func(a, b *probe) int {
		if a.file != b.file {
			return cmp.Compare(a.file, b.file)
		}
		return cmp.Compare(a.number, b.number)
	})
	for _, p := range s.probes {
		s.lookups = append(s.lookups, &p.lookup)
	}
	for from := 0; from < len(s.probes); {
		p, to := s.probes[from], from+1
		for to < len(s.probes) && s.probes[to].file == p.file && s.probes[to].number == p.number {
			to++
		}
		s.blocks = append(s.blocks, block{p.reader, s.probes[from:to], s.lookups[from:to:to]})
		from = to
	}
}

// request reads the blocks of the round where reads are requests: first parts of indexes side by side, then blocks.
func (s *Search) request() {
	s.group(func(p *probe) (int, bool) { return p.leaf, p.leaf >= 0 })
	callback.Parallel(len(s.blocks), values.MaxRequests, func(i int) {
		b := &s.blocks[i]
		for n, ok := range b.reader.LocateTogether(b.lookups, b.probes[0].filter) {
			b.probes[n].done = !ok
		}
	})
	s.group(func(p *probe) (int, bool) { return p.lookup.Block(), !p.done })
	callback.Parallel(len(s.blocks), values.MaxRequests, func(i int) {
		s.blocks[i].reader.FindInBlock(nil, s.blocks[i].lookups)
	})
}
