package version

import "bytes"

// How much of blob files the values take that range tombstones hide is not known before tables
// are merged. What is known is which older tables they reach over: those that they cover count whole, and
// those at their ends half.

// mostFragments is how many tombstones of a table are looked at one by one. More count as one, over all
// that the table spans.
const mostFragments = 64

// RangesHide returns about how many bytes of blob files the range tombstones of a version hide from readers,
// as far as their tables are open.
func (v *Version) RangesHide() uint64 { return v.rangesHide }

// weighTombstones finds out what the range tombstones of v hide, where tables are open. Nobody has v yet.
func (v *Version) weighTombstones() {
	v.rangesHide = 0
	if v.blobTotals.Files == 0 || !v.hasTombstones {
		return
	}
	for i, r := range v.Runs[:len(v.Runs)-1] {
		if r.WithTombstones == nil {
			continue
		}
		for t := range r.WithTombstones.All() {
			if t.hides.Load() == 0 {
				v.weigh(t, v.Runs[i+1:])
			}
			v.rangesHide += max(t.hides.Load(), 1) - 1
		}
	}
}

// weigh finds out what the range tombstones of a table hide in older runs.
func (v *Version) weigh(t *Table, older []*Run) {
	r := t.Reader.Load()
	if r == nil {
		return
	}
	tombs := r.Tombstones().Clip(nil, nil, nil)
	hides := uint64(0)
	if len(tombs) > mostFragments {
		hides = blobBytesUnder(older, t.Smallest, t.UpperBound())
	} else {
		for _, f := range tombs {
			hides += blobBytesUnder(older, f.Start, f.End)
		}
	}
	t.hides.Store(hides + 1)
}

// blobBytesUnder returns about how many bytes of blob files tables of runs refer to for keys of [lo, hi).
func blobBytesUnder(runs []*Run, lo, hi []byte) (sum uint64) {
	for _, r := range runs {
		from, to := r.over(lo, hi)
		for i := from; i < to; i++ {
			t := r.At(i)
			size := t.blobBytes()
			if bytes.Compare(t.Smallest, lo) < 0 || hi != nil && !t.Before(hi) {
				size /= 2
			}
			sum += size
		}
	}
	return sum
}
