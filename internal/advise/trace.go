package advise

import "time"

// A Trace is what was asked of a store. Lookups and scans are each in the order of time. Lookups of one key share its
// entry in Keys.
type Trace struct {
	Keys    []Key
	Lookups []Lookup
	Scans   []Scan

	OneIn   int           // lookups of one key in so many are there; 0 is 1
	Span    time.Duration // from the first to the last; 0: not known
	Dropped uint64        // lookups that are known to lack
	Cut     uint64        // lookups and scans that were left out at the end
	Changed int           // lookups whose answer in the trace is not that of the store now
}

// A Key is one that was looked up.
type Key struct {
	Bytes []byte // the key itself, for those who find its path; nil if there is only a hash
	Hash  uint64 // tells keys apart, and nothing else
	Found bool   // the store has a value under it

	// Path has the files that a lookup comes to, in order, up to the one that answers. A
	// lookup that memtables answer has none.
	Path []Step

	// Pathless says that the path is not known, as of a key of which there is only a hash. It is
	// then made up: blocks and runs are drawn by how large they are.
	Pathless bool
}

// A Step is a file whose bounds admit a key.
type Step struct {
	File    int32
	Block   int32 // the only data block that may have the key, by its number
	Present bool  // the file has a version of the key: the block is read, whatever the filter

	// Again is how often a block is read once more if the key is present: for older versions under an
	// operand, say. These are in the cache by then.
	Again int32

	// Decoded and Stored are the bytes of the block in the cache and in the file, as far as they are
	// known: one step of those that lead to it is enough. 0 is as many as blocks of the file have on
	// average.
	Decoded, Stored int32
}

// A Lookup is one that was made.
type Lookup struct {
	Key   int32         // of Trace.Keys
	Found bool          // its answer then, whatever the store has now
	At    time.Duration // since the trace began
}

// A Scan is one that was made: a seek and the entries that it returned.
type Scan struct {
	At      time.Duration // since the trace began
	Entries int
	Bounded bool   // it had bounds at both ends, so that filters may answer for them
	Prefix  int    // bytes that both bounds share
	Parts   []Part // files that its bounds meet

	// The rest is for those who find its parts. Start is where it began, and End the bound that it could not pass,
	// the lower one if it is Backward; nil is none.
	Start, End []byte
	Backward   bool
	Ended      bool // it was not broken off
	Hashed     bool // of Start or End there is only a hash, and they are nil
	Shortened  bool // of Start or End there are only the first bytes
}

// Bounds returns the lower and the upper bound of a scan, as far as they are known; nil is none.
func (s *Scan) Bounds() (lo, hi []byte) {
	if s.Backward {
		return s.End, s.Start
	}
	return s.Start, s.End
}

// A Part is what a scan meets in a file.
type Part struct {
	File   int32
	First  int32 // data block
	Blocks int32 // that hold the range, at least one
	Empty  bool  // no entry of the file is within the range: a block is read to find that out
}
