package advise

import "time"

// A Trace has the lookups and scans of a store, each in the order of time. Lookups of one key with the same answer
// share an entry in Keys. A key that was looked up before it was written, and again afterwards, has two entries.
type Trace struct {
	Keys    []Key
	Lookups []Lookup
	Scans   []Scan

	OneIn   int           // one key in OneIn is recorded; 0 is 1
	Span    time.Duration // from the first to the last; 0: not known
	Dropped uint64        // lookups that are known to be missing
	Cut     uint64        // lookups and scans that were left out at the end
	Changed int           // lookups with another answer than the store has now, as far as that is known
}

// A Key is a looked-up key with one of the two answers.
type Key struct {
	Bytes   []byte // the key itself, to find its path; nil if there is only a hash
	Hash    uint64 // identifies keys, and nothing else
	Found   bool   // its lookups found a value
	Changed bool   // the store has the other answer now, as far as that is known
	Both    bool   // Keys has an entry with the other answer as well

	// Path has the files that a lookup with this answer reaches, in order, up to the one that answers. A lookup that
	// memtables answer has none. If the key was absent and is present now, no file of the path has it. If it was
	// present and is gone, the last file of the path had it.
	Path []Step

	// Pathless says that the path is not known, as of a key of which there is only a hash. It is
	// then made up: blocks and runs are drawn by how large they are.
	Pathless bool
}

// A Step is a file with bounds that include a key.
type Step struct {
	File    int32
	Block   int32 // the only data block that may have the key, by its number
	Present bool  // the file has a version of the key: the block is read, with any filter

	// Again is how often a block is read once more if the key is present: for older versions under an
	// operand, say. These are in the cache by then.
	Again int32

	// Decoded and Stored are the bytes of the block in the cache and in the file, if known: one of
	// the steps to the block is enough. 0 is the average of the file's blocks.
	Decoded, Stored int32
}

// A Lookup is one that was made.
type Lookup struct {
	Key   int32         // of Trace.Keys, or of those that SetLookups gets
	Found bool          // its answer then, whatever the store has now
	At    time.Duration // since the trace began
}

// SetLookups sets the trace's lookups, which are in the order of time, and its keys. Each lookup has the number of its
// key in keys, whatever the answer was; a key with both answers becomes two. Until a store is asked, the last lookup of
// a key says which answer has changed.
func (t *Trace) SetLookups(keys []Key, lookups []Lookup) {
	const none = -1
	entries := make([][2]int32, len(keys)) // of t.Keys, by answer
	for i := range entries {
		entries[i] = [2]int32{none, none}
	}
	for i := range lookups {
		l := &lookups[i]
		pair, answer := &entries[l.Key], 0
		if l.Found {
			answer = 1
		}
		if pair[answer] == none {
			pair[answer] = int32(len(t.Keys))
			k := keys[l.Key]
			k.Found = l.Found
			t.Keys = append(t.Keys, k)
		}
		l.Key = pair[answer]
		t.Keys[l.Key].Changed = false
		if other := pair[1-answer]; other != none {
			t.Keys[l.Key].Both, t.Keys[other].Both, t.Keys[other].Changed = true, true, true
		}
	}
	t.Lookups = lookups
}

// CountChanged counts the lookups with a changed answer.
func (t *Trace) CountChanged() {
	t.Changed = 0
	for _, l := range t.Lookups {
		if t.Keys[l.Key].Changed {
			t.Changed++
		}
	}
}

// A Scan is one that was made: a seek and the entries that it returned.
type Scan struct {
	At      time.Duration // since the trace began
	Entries int
	Bounded bool   // it had bounds at both ends, so that filters may answer for them
	Prefix  int    // bytes that both bounds share
	Parts   []Part // files that its bounds meet

	// The rest is to find its parts. Start is where it began, and End the bound that it could not pass, the lower one
	// if it is Backward; nil is none.
	Start, End []byte
	Backward   bool
	Ended      bool // it was not broken off
	Hashed     bool // of Start or End there is only a hash, and they are nil
	Shortened  bool // of Start or End there are only the first bytes
}

// Bounds returns the lower and the upper bound of a scan; nil: none, or not known.
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
