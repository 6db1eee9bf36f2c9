package iterator

import (
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// Sources are the sequences of memtables, files of level 0 and sorted runs that one
// iterator merges, and the buffers of all of them. A short scan would spend more time on
// making them than on its entries, so they are used again after Release.
type Sources struct {
	Merging
	runs   []*Run
	tables []*tableIter     // of level 0; the first usedTables are in use
	mems   []*memtable.Iter // the first usedMems are in use

	usedTables, usedMems int
}

// AddMemtable adds the points of a memtable.
func (s *Sources) AddMemtable(m *memtable.Memtable) {
	if !m.HasPoints() {
		return
	}
	if s.usedMems == len(s.mems) {
		s.mems = append(s.mems, &memtable.Iter{})
	}
	it := s.mems[s.usedMems]
	s.usedMems++
	it.Init(m)
	s.Iters = append(s.Iters, it)
}

// AddVersion adds the tables of a version that may have keys of [lo, hi) with a prefix.
// Those of level 0 are opened; those of sorted runs are when an iterator comes to them.
func (s *Sources) AddVersion(v *version.Version, c *version.TableCache, lo, hi []byte, p *Prefix) error {
	for _, t := range v.Levels[0].Tables {
		if !t.Overlaps(lo, hi) {
			continue
		}
		r, err := t.Open(c)
		if err != nil {
			return err
		}
		if !p.rulesOut(r) {
			s.addTable(t, r)
		}
	}
	for len(s.runs) < len(v.Runs) {
		s.runs = append(s.runs, &Run{})
	}
	for n, r := range v.Runs {
		s.runs[n].reset(r, c, p)
		s.Iters = append(s.Iters, s.runs[n])
	}
	return nil
}

func (s *Sources) addTable(t *version.Table, r *sstable.Reader) {
	if s.usedTables == len(s.tables) {
		s.tables = append(s.tables, &tableIter{})
	}
	it := s.tables[s.usedTables]
	s.usedTables++
	it.t = t
	it.Init(r, sstable.IterOptions{})
	s.Iters = append(s.Iters, it)
}

// maxRetainedTables bounds the iterators of tables that are kept, each with the buffer of
// a block.
const maxRetainedTables = 32

// Release makes s empty, for the next iterator. It refers to nothing of the store any more.
func (s *Sources) Release() {
	s.release()
	for _, it := range s.runs {
		if it.run != nil {
			it.release()
		}
	}
	for _, it := range s.tables[:s.usedTables] {
		it.t = nil
		it.Release()
	}
	for _, it := range s.mems[:s.usedMems] {
		*it = memtable.Iter{}
	}
	if len(s.tables) > maxRetainedTables {
		clear(s.tables[maxRetainedTables:])
		s.tables = s.tables[:maxRetainedTables]
	}
	s.usedTables, s.usedMems = 0, 0
}
