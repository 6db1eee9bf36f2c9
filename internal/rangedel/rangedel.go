// Package rangedel answers which range tombstones cover a key.
//
// Tombstones overlap as their writers please. A Set cuts them at every start and end into fragments that do not, so
// that one binary search finds all the tombstones over a key:
//
//	a───────────m            #9        a──f──m──t   fragments
//	      f───────────t      #4        9  9  4      newest first
//	                                      4
//
// A Set is made once, of all that a file or a compaction has. A History takes one
// tombstone after the other, as a memtable does.
package rangedel

import (
	"bytes"
	"iter"
	"slices"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
)

// A Tombstone deletes every version below Seq of the user keys in [Start, End). A nil End has no bound.
type Tombstone struct {
	Start, End []byte
	Seq        base.SeqNum
}

// Empty reports whether the tombstone covers no key at all.
func (t Tombstone) Empty() bool { return t.End != nil && bytes.Compare(t.Start, t.End) >= 0 }

// CompareEnds orders two upper bounds; nil is after every key.
func CompareEnds(a, b []byte) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return bytes.Compare(a, b)
}

// NewSet cuts tombstones into fragments. A fragment lists all that cover it, so time and space are O(n log n + n d) for
// n tombstones of which up to d overlap. It keeps nothing of the tombstones.
func NewSet(ts []Tombstone) *Set {
	b := Builder{set: Set{parts: make([]part, 0, len(ts))}}
	for group := range groups(ts) {
		b.addGroup(group)
	}
	return b.Set()
}

func (b *Builder) addGroup(ts []Tombstone) {
	if len(ts) == 1 {
		b.add(ts[0])
		return
	}
	cuts := cutsOf(ts)
	var open []Tombstone // those that cover the current span
	for i, from := range cuts {
		for len(ts) > 0 && bytes.Compare(ts[0].Start, from) <= 0 {
			open, ts = append(open, ts[0]), ts[1:]
		}
		open = slices.DeleteFunc(open, func(t Tombstone) bool { return CompareEnds(t.End, from) <= 0 })
		var to []byte // the last span has no end
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		for _, seq := range seqsOf(open) {
			b.add(Tombstone{Start: from, End: to, Seq: seq})
		}
	}
}

// groups splits the tombstones that cover a key into groups: those of a group overlap others of it, and none of another
// group. The groups are in order, and sorted by starts, none of which is nil. Most tombstones are a group of their own.
func groups(ts []Tombstone) iter.Seq[[]Tombstone] {
	ts = slices.DeleteFunc(slices.Clone(ts), Tombstone.Empty)
	for i := range ts {
		if ts[i].Start == nil {
			ts[i].Start = []byte{} // below, nil is an end without a bound
		}
	}
	sort.Slice(ts, func(i, j int) bool { return bytes.Compare(ts[i].Start, ts[j].Start) < 0 })
	return func(yield func([]Tombstone) bool) {
		for len(ts) > 0 {
			n, end := 1, ts[0].End
			for ; n < len(ts) && CompareEnds(ts[n].Start, end) < 0; n++ {
				if CompareEnds(ts[n].End, end) > 0 {
					end = ts[n].End
				}
			}
			if !yield(ts[:n]) {
				return
			}
			ts = ts[n:]
		}
	}
}

// cutsOf returns the places to cut a group at: every start and bounded end, sorted, once each.
func cutsOf(ts []Tombstone) [][]byte {
	cuts := make([][]byte, 0, 2*len(ts))
	for _, t := range ts {
		cuts = append(cuts, t.Start)
		if t.End != nil {
			cuts = append(cuts, t.End)
		}
	}
	sort.Slice(cuts, func(i, j int) bool { return bytes.Compare(cuts[i], cuts[j]) < 0 })
	return slices.CompactFunc(cuts, bytes.Equal)
}

func seqsOf(ts []Tombstone) []base.SeqNum {
	seqs := make([]base.SeqNum, len(ts))
	for i, t := range ts {
		seqs[i] = t.Seq
	}
	sort.Slice(seqs, func(i, j int) bool { return seqs[i] > seqs[j] })
	return slices.Compact(seqs)
}
