package engine

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
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

// EachPair calls f with the name and the values of every count of t and u.
func (t Tally) EachPair(u Tally, f func(name string, t, u Count)) {
	ts, us := reflect.ValueOf(t), reflect.ValueOf(u)
	for i := range ts.NumField() {
		name := strings.ReplaceAll(ts.Type().Field(i).Tag.Get("json"), "_", " ")
		f(name, Count(ts.Field(i).Int()), Count(us.Field(i).Int()))
	}
}

// UnknownTally is the tally of an engine that counts nothing.
func UnknownTally() Tally { return unknown[Tally]() }

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

// Plus returns the sums of all counts of two values of a type, such as those of several repetitions. A type that has
// more than signed integers, in structures and slices, makes Plus and Minus panic with its name.
func Plus[T any](a, b T) T { return combine(a, b, Count.Plus) }

// Minus returns what happened after b was taken and before a.
func Minus[T any](a, b T) T { return combine(a, b, Count.Minus) }

// unknown returns a value without a known count.
func unknown[T any]() (none T) { return combine(none, none, func(_, _ Count) Count { return Unknown }) }

// combine returns f applied to every pair of counts of a and b. Of lists it has what both have.
func combine[T any](a, b T, f func(Count, Count) Count) (out T) {
	var walk func(out, a, b reflect.Value)
	walk = func(out, a, b reflect.Value) {
		switch a.Kind() {
		case reflect.Struct:
			for i := range a.NumField() {
				walk(out.Field(i), a.Field(i), b.Field(i))
			}
		case reflect.Slice:
			for i := range min(a.Len(), b.Len()) {
				out.Set(reflect.Append(out, reflect.Zero(out.Type().Elem())))
				walk(out.Index(i), a.Index(i), b.Index(i))
			}
		default:
			if !a.CanInt() {
				panic(fmt.Errorf("combine counts: %s has a value of type %s", reflect.TypeFor[T](), a.Type()))
			}
			out.SetInt(int64(f(Count(a.Int()), Count(b.Int()))))
		}
	}
	walk(reflect.ValueOf(&out).Elem(), reflect.ValueOf(a), reflect.ValueOf(b))
	return out
}
