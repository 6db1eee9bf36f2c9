package iterator

import (
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// Sources are the sequences of memtables and sorted runs that one iterator merges, and the buffers of all of them. A
// short scan would spend more time on making them than on its entries, so they are used again after Release.
type Sources struct {
	Merging
	runs []*Run           // the first usedRuns are in use
	mems []*memtable.Iter // the first usedMems are in use

	usedRuns, usedMems int
	bounds             sstable.Bounds // of all runs

	Tables sstable.IterOptions // of the iterators of tables that AddVersion adds

	far sstable.Pass // where reads of tables are requests
}

// AddMemtable adds the points of a memtable, and its folds (memtable.KindFold).
func (s *Sources) AddMemtable(m *memtable.Memtable) {
	if !m.HasPoints() {
		return
	}
	if s.usedMems == len(s.mems) {
		s.mems = append(s.mems, &memtable.Iter{})
	}
	it := s.mems[s.usedMems]
	s.usedMems++
	it.InitWithFolds(m)
	s.Iters = append(s.Iters, it)
}

// AddVersion adds the tables of a version that may have keys of [lo, hi) with a prefix. They are opened when an
// iterator reaches them. A run of level 0 that has no such keys is left out: there may be many of them, and the others
// mostly have keys of any range.
func (s *Sources) AddVersion(v *version.Version, c *tablecache.Cache, lo, hi []byte, p *Prefix) {
	if c.Far {
		s.pass, s.far.Budget = &s.far, &c.Parts
	}
	o := s.Tables
	if lo != nil || hi != nil {
		s.bounds = sstable.Bounds{Lower: lo, Upper: hi}
		o.Bounds = &s.bounds
	}
	for _, r := range v.Runs {
		if r.Level == 0 && !r.Overlaps(lo, hi) {
			continue
		}
		if s.usedRuns == len(s.runs) {
			s.runs = append(s.runs, &Run{})
		}
		it := s.runs[s.usedRuns]
		s.usedRuns++
		it.reset(r, c, p, o)
		if c.Far {
			it.share(&s.far)
		}
		s.Iters = append(s.Iters, it)
	}
}

// maxRetainedRuns bounds the iterators of runs that are kept, and maxRetainedBytes their buffers, in bytes: what some
// twenty of them have after short scans. Else a thousand iterators over a hundred runs would leave gigabytes behind
// until the collector emptied the pool.
const (
	maxRetainedRuns  = 32
	maxRetainedBytes = 1 << 20
)

// Release makes s empty, for the next iterator. It refers to nothing of the store any more.
func (s *Sources) Release() {
	s.release()
	for _, it := range s.runs[:s.usedRuns] {
		it.release()
	}
	for _, it := range s.mems[:s.usedMems] {
		*it = memtable.Iter{}
	}
	s.usedRuns, s.usedMems, s.Tables, s.bounds = 0, 0, sstable.IterOptions{}, sstable.Bounds{}
	clear(s.far.Iters)
	s.far.Iters, s.far.Budget = s.far.Iters[:0], nil
	s.trim()
}

// trim drops iterators so that the buffers of the others stay within the bound.
func (s *Sources) trim() {
	kept, runs := 0, 0
	for _, it := range s.runs[:min(len(s.runs), maxRetainedRuns)] {
		if kept += it.it.Kept(); kept > maxRetainedBytes {
			break
		}
		runs++
	}
	clear(s.runs[runs:])
	s.runs = s.runs[:runs]
}
