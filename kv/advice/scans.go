package advice

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/lookuptrace"
	"github.com/siftkv/siftkv/internal/version"
)

// maxScanParts bounds the files of one scan.
const maxScanParts = 64

// scan finds the files that a scan visits, and which of their blocks, by bounds and indexes. How its entries spread
// over runs is not known: it assumes the proportions of the runs' numbers of entries.
func (l *locator) scan(s *advise.Scan) {
	if s.Hashed {
		return
	}
	lo, hi := s.Bounds()
	if s.Bounded = lo != nil && hi != nil; s.Bounded {
		s.Prefix = lookuptrace.CommonPrefix(lo, hi)
		if bytes.Compare(lo, hi) >= 0 {
			return
		}
	}
	all := uint64(0)
	runs := l.store.Version.Runs
	for _, r := range runs {
		all += r.Totals().Entries
	}
	for i, r := range runs {
		p := partOfScan{l: l, lo: lo, hi: hi, backward: s.Backward, toEnd: s.Ended && s.Bounded}
		p.entries = float64(s.Entries) * float64(r.Totals().Entries) / float64(max(1, all))
		p.empty = s.Entries == 0 || p.entries < 0.5 && i < len(runs)-1
		s.Parts = p.in(r, s.Parts)
	}
}

type partOfScan struct {
	l        *locator
	lo, hi   []byte
	backward bool
	toEnd    bool    // it reached its end, which is a bound
	entries  float64 // that it probably meets in the run
	empty    bool    // probably there are none
}

// in appends the files of the run.
func (p *partOfScan) in(r *version.Run, parts []advise.Part) []advise.Part {
	tables := slices.Clone(r.Overlapping(p.lo, p.hi))
	if p.backward {
		slices.Reverse(tables)
	}
	left := p.entries
	for _, t := range tables {
		if len(parts) >= maxScanParts {
			break
		}
		n := p.l.number[t]
		f := &p.l.shape.Files[n]
		if f.Blocks == 0 {
			continue
		}
		perBlock := max(1, float64(f.Keys)/float64(f.Blocks))
		first, last := p.blocks(t, n)
		blocks := last - first + 1
		if !p.toEnd {
			blocks = min(blocks, int(left/perBlock)+1)
		}
		if p.backward {
			first = last - blocks + 1
		}
		parts = append(parts, advise.Part{File: n, First: int32(first), Blocks: int32(blocks),
			Empty: p.empty && blocks == 1})
		if left -= float64(blocks) * perBlock; left <= 0 && !p.toEnd {
			break
		}
	}
	return parts
}

// blocks returns the first and last block of a table with keys within the bounds.
func (p *partOfScan) blocks(t *version.Table, n int32) (first, last int) {
	r := p.l.files[n].reader
	last = int(p.l.shape.Files[n].Blocks) - 1
	about := func(key []byte, past int) int {
		block, exact, ok := r.BlockAbout(key, filterpolicy.Hash(key))
		if !ok {
			return past
		}
		if !exact {
			p.l.guessed++
		}
		return block
	}
	if p.lo != nil && bytes.Compare(p.lo, t.Smallest) > 0 {
		first = about(p.lo, last)
	}
	if p.hi != nil && bytes.Compare(p.hi, t.UpperBound()) < 0 {
		last = about(p.hi, last)
	}
	return first, max(first, last)
}
