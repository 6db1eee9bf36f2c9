package engine

import (
	"encoding/json"
	"strconv"
)

// A Count is a number of events or bytes, or Unknown. In JSON an unknown count
// is null.
type Count int64

// Unknown is the count of what an engine does not count.
const Unknown Count = -1

// Known reports whether the engine counts this.
func (c Count) Known() bool { return c >= 0 }

// Plus returns c + d, Unknown if either is.
func (c Count) Plus(d Count) Count {
	if !c.Known() || !d.Known() {
		return Unknown
	}
	return c + d
}

// Minus returns c - d, Unknown if either is. The caller knows that d was read
// before c, so that the difference is not negative.
func (c Count) Minus(d Count) Count {
	if !c.Known() || !d.Known() {
		return Unknown
	}
	return c - d
}

// MarshalJSON writes the number, or null.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(c), 10), nil
}

// UnmarshalJSON reads a number or null.
func (c *Count) UnmarshalJSON(data []byte) error {
	*c = Unknown
	if string(data) == "null" {
		return nil
	}
	return json.Unmarshal(data, (*int64)(c))
}

// A Tally says what lookups did in some set of files: those of one level, or
// all. Filter outcomes are named by what they are: a negative ends the search
// in its file, a true positive leads to a file that has the key, a false
// positive to one that has not, unless the engine remembers from an earlier lookup that it has not.
type Tally struct {
	FilesConsidered Count `json:"files_considered"`    // files whose place in the tree could hold the key
	OutOfBounds     Count `json:"ruled_out_by_bounds"` // of those, ruled out by smallest and largest key
	OutOfRange      Count `json:"ruled_out_by_range_tombstone"`
	FilterChecks    Count `json:"filter_checks"`
	Negatives       Count `json:"filter_negatives"`
	TruePositives   Count `json:"filter_true_positives"`
	FalsePositives  Count `json:"filter_false_positives"`
	Remembered      Count `json:"filter_remembered"` // false positives of which the engine knew, and read nothing
	Unfiltered      Count `json:"unfiltered"`        // probes of files without a usable filter
	IndexLookups    Count `json:"index_lookups"`
	OutOfIndex      Count `json:"ruled_out_by_index"` // index lookups that found no block
	BlocksFromCache Count `json:"blocks_from_cache"`  // data blocks; in Pebble index and filter blocks as well
	BlocksFromDisk  Count `json:"blocks_from_disk"`
	LeavesFromDisk  Count `json:"index_leaves_from_disk"` // of partitioned indexes, if not in BlocksFromDisk
	BytesFromDisk   Count `json:"bytes_from_disk"`        // bytes of those blocks and leaves as stored
	BytesDecoded    Count `json:"bytes_decoded"`          // the same, decompressed
	Answered        Count `json:"answered"`               // lookups answered here
}

// counts returns the counts of t in the order of their declaration.
func (t *Tally) counts() [17]*Count {
	return [17]*Count{
		&t.FilesConsidered, &t.OutOfBounds, &t.OutOfRange, &t.FilterChecks, &t.Negatives, &t.TruePositives,
		&t.FalsePositives, &t.Remembered,
		&t.Unfiltered, &t.IndexLookups, &t.OutOfIndex, &t.BlocksFromCache, &t.BlocksFromDisk, &t.LeavesFromDisk,
		&t.BytesFromDisk, &t.BytesDecoded,
		&t.Answered,
	}
}

// countNames names the counts in the same order.
var countNames = [17]string{
	"files considered", "ruled out by bounds", "ruled out by range tombstones", "filter checks", "negatives",
	"true positives", "false positives", "remembered",
	"unfiltered", "index lookups", "ruled out by index", "blocks from cache", "blocks from disk",
	"index leaves from disk", "bytes from disk", "bytes decoded",
	"answered",
}

// EachPair calls f with the name and the values of every count of t and u.
func (t Tally) EachPair(u Tally, f func(name string, t, u Count)) {
	ts, us := t.counts(), u.counts()
	for i, name := range countNames {
		f(name, *ts[i], *us[i])
	}
}

// UnknownTally is the tally of an engine that counts nothing.
func UnknownTally() Tally {
	var t Tally
	for _, c := range t.counts() {
		*c = Unknown
	}
	return t
}

// combine returns f applied to every pair of counts of a and b.
func combine(a, b Tally, f func(Count, Count) Count) Tally {
	left, right := a.counts(), b.counts()
	for i := range left {
		*left[i] = f(*left[i], *right[i])
	}
	return a
}

// Plus returns the sum of two tallies.
func (t Tally) Plus(u Tally) Tally { return combine(t, u, Count.Plus) }

// Minus returns what happened after u was taken and before t.
func (t Tally) Minus(u Tally) Tally { return combine(t, u, Count.Minus) }

// FromDisk counts the blocks read from files. An engine that does not count leaves of
// indexes by themselves has them among the others.
func (t *Tally) FromDisk() Count {
	if t.LeavesFromDisk.Known() {
		return t.BlocksFromDisk.Plus(t.LeavesFromDisk)
	}
	return t.BlocksFromDisk
}

// RuledOut counts the files that neither a filter nor an index was asked about.
func (t *Tally) RuledOut() Count { return t.OutOfBounds.Plus(t.OutOfRange) }

// Blocks counts the blocks from cache and file.
func (t *Tally) Blocks() Count { return t.BlocksFromCache.Plus(t.FromDisk()) }

// Counters are cumulative counts of one engine.
type Counters struct {
	Lookups         Count   `json:"lookups"`          // as the engine counted them
	MemtableAnswers Count   `json:"memtable_answers"` // lookups that no file was needed for
	Total           Tally   `json:"total"`            // over all levels
	Levels          []Tally `json:"-"`                // by level, youngest first; empty if not counted by level
}

// Minus returns what happened after d was taken and before c.
func (c Counters) Minus(d Counters) Counters { return c.pair(d, Count.Minus) }

// Plus returns the sum, such as that of several repetitions.
func (c Counters) Plus(d Counters) Counters { return c.pair(d, Count.Plus) }

func (c Counters) pair(d Counters, f func(Count, Count) Count) Counters {
	sum := Counters{
		Lookups:         f(c.Lookups, d.Lookups),
		MemtableAnswers: f(c.MemtableAnswers, d.MemtableAnswers),
		Total:           combine(c.Total, d.Total, f),
	}
	for i := range min(len(c.Levels), len(d.Levels)) {
		sum.Levels = append(sum.Levels, combine(c.Levels[i], d.Levels[i], f))
	}
	return sum
}
