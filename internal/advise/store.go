package advise

import (
	"github.com/siftkv/siftkv/filterpolicy"
)

// A Store is what there is to know of a store before anything is asked of it.
type Store struct {
	Files []File // in any order; their numbers are those of Step.File
	Runs  int    // sorted runs; File.Run is below

	Cache      int64  // bytes of the block cache
	BlockSize  int64  // bytes of new data blocks; 0: not known, and no other size is tried
	Filter     string // spec of new files' filters
	Budget     int64  // kv.Options.FilterBudget; 0: none
	Compaction string // style, as its options text; empty: not known
	BlobFiles  int    // files of blob values, which no setting here changes

	Tree Tree // how the levels are sized

	// Remembered is kv.Options.FalsePositiveMemory in bytes: false positives that are read
	// once. 0 is none.
	Remembered int64
}

// A Tree is what the sizes of levels follow from, as kv.Options has it. Zero fields are its defaults.
type Tree struct {
	RunsPerLevel int
	Level0       int     // L0CompactionThreshold
	Space        float64 // SpaceAmplification
	BaseLevel    int64   // BaseLevelSize
	Memtable     int64   // MemtableSize
}

// A File is a sorted file. Numbers are those of its properties.
type File struct {
	Run         int    // in the order in which a lookup asks them: 0 is the youngest
	Level       int    // -1: not known
	Keys        uint64 // distinct ones, which its filter is for
	Blocks      uint64 // data blocks
	BlockSize   int64  // that they were to have, as decoded; 0: not known
	Bytes       int64  // of data blocks as stored
	Decoded     int64  // of a data block in the cache, on average; 0: as stored
	IndexBytes  int64
	FilterBytes int64
	Filter      string // spec; empty: no filter that lookups ask
	RangeBytes  int64
	Ranges      string // spec of its range filter; empty: none that scans ask
}

// filterNow returns what theory says of a file's own filter, and false if it says nothing.
func (f *File) filterNow() (filterpolicy.Expectation, bool) {
	if f.Filter == "" {
		return noFilter, true
	}
	p, err := filterpolicy.Parse(f.Filter)
	if err != nil {
		return noFilter, false
	}
	e := filterpolicy.Expected(p, int(f.Keys))
	return e, e.OK
}

// rangesNow is filterNow of a file's range filter.
func (f *File) rangesNow() filterpolicy.Expectation {
	p, err := filterpolicy.ParseRange(f.Ranges)
	if err != nil {
		return noFilter
	}
	return expectedRange(p, f.Keys)
}

// expectedRange is filterpolicy.ExpectedRange; what theory does not know counts as no filter.
func expectedRange(p filterpolicy.RangePolicy, keys uint64) filterpolicy.Expectation {
	if e := filterpolicy.ExpectedRange(p, int(keys)); e.OK && e.FPR < 1 {
		return e
	}
	return noFilter
}

// noFilter is what lookups meet in a file without a filter.
var noFilter = filterpolicy.Expectation{FPR: 1, OK: true}

// stored returns the mean bytes of a block in the file.
func (f *File) stored() float64 { return float64(f.Bytes) / float64(max(1, f.Blocks)) }

// cached returns what a block takes in the cache.
func (f *File) cached() float64 {
	if f.Decoded > 0 {
		return float64(f.Decoded)
	}
	return max(1, f.stored())
}

// Keys returns the entries of all files: a key counts in each file that has it.
func (s *Store) Keys() (sum uint64) {
	for i := range s.Files {
		sum += s.Files[i].Keys
	}
	return sum
}

// blocks returns the data blocks of all files, and at least 1.
func (s *Store) blocks() uint64 {
	sum := uint64(0)
	for i := range s.Files {
		sum += s.Files[i].Blocks
	}
	return max(1, sum)
}

func (s *Store) runKeys() []uint64 {
	keys := make([]uint64, s.Runs)
	for i := range s.Files {
		keys[s.Files[i].Run] += s.Files[i].Keys
	}
	return keys
}
