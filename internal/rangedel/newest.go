package rangedel

import (
	"bytes"
	"container/heap"
)

// Newest returns fragments, each with the sequence number of the newest tombstone over it and no others. That is all
// that matters if no reader can see some of the tombstones and not all, as in one batch. n tombstones give fewer than
// 2n fragments, in order. It takes O(n log n) with any overlaps.
func Newest(ts []Tombstone) []Tombstone {
	out := make([]Tombstone, 0, len(ts))
	for group := range groups(ts) {
		out = appendNewest(out, group)
	}
	return out
}

// appendNewest appends the fragments of a group.
func appendNewest(out, ts []Tombstone) []Tombstone {
	if len(ts) == 1 {
		return appendSpan(out, ts[0])
	}
	cuts := cutsOf(ts)
	var open newestFirst
	for i, from := range cuts {
		for len(ts) > 0 && bytes.Compare(ts[0].Start, from) <= 0 {
			heap.Push(&open, ts[0])
			ts = ts[1:]
		}
		for len(open) > 0 && CompareEnds(open[0].End, from) <= 0 {
			heap.Pop(&open)
		}
		if len(open) == 0 {
			continue
		}
		var to []byte
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		out = appendSpan(out, Tombstone{Start: from, End: to, Seq: open[0].Seq})
	}
	return out
}

// appendSpan appends t, or lengthens the last tombstone if t goes on with it.
func appendSpan(out []Tombstone, t Tombstone) []Tombstone {
	if n := len(out); n > 0 && out[n-1].Seq == t.Seq && bytes.Equal(out[n-1].End, t.Start) {
		out[n-1].End = t.End
		return out
	}
	return append(out, t)
}

type newestFirst []Tombstone

func (h newestFirst) Len() int           { return len(h) }
func (h newestFirst) Less(i, j int) bool { return h[i].Seq > h[j].Seq }
func (h newestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

func (h *newestFirst) Push(x any) {
	if t, ok := x.(Tombstone); ok {
		*h = append(*h, t)
	}
}

func (h *newestFirst) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	*h = (*h)[:last]
	return t
}
