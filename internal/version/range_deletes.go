package version

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/rangedel"
)

// The blob file bytes of values under range tombstones are not known before tables are merged. But it is known which
// older tables the tombstones overlap: those that they cover count whole, and those at their ends half.

// mostFragments is how many tombstones of a table are looked at one by one. More count as one, over all
// that the table spans.
const mostFragments = 64

// HiddenByRanges returns about how many bytes of blob files are under range tombstones of a version. It counts
// tombstones of open tables.
func (v *Version) HiddenByRanges() uint64 { return v.hiddenByRanges }

// weighTombstones finds out what the range tombstones of v hide, for open tables. v must not be shared yet.
func (v *Version) weighTombstones() {
	v.hiddenByRanges = 0
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
			v.hiddenByRanges += t.hiddenByRanges()
		}
	}
}

// hiddenByRanges returns about how many bytes of blob files the table's range tombstones hide; 0 if that is not known.
func (t *Table) hiddenByRanges() uint64 { return max(t.hides.Load(), 1) - 1 }

// HiddenBytes returns about how many bytes of blob files the table hides in older tables.
func (t *Table) HiddenBytes() uint64 { return t.Garbage.HiddenBytes + t.hiddenByRanges() }

// weigh finds out what the range tombstones of a table hide in older runs.
func (v *Version) weigh(t *Table, older []*Run) {
	r := t.Reader.Load()
	if r == nil {
		return
	}
	t.hides.Store(BlobBytesUnder(older, r.Tombstones().Clip(nil, nil, nil)) + 1)
}

// BlobBytesUnder returns about how many bytes of blob files the tables of runs refer to for keys under range
// tombstones, which are in order and do not overlap.
func BlobBytesUnder(runs []*Run, tombs []rangedel.Tombstone) (sum uint64) {
	if len(tombs) > mostFragments {
		return blobBytesUnder(runs, tombs[0].Start, tombs[len(tombs)-1].End)
	}
	for _, f := range tombs {
		sum += blobBytesUnder(runs, f.Start, f.End)
	}
	return sum
}

// blobBytesUnder returns about how many bytes of blob files tables of runs refer to for keys of [lo, hi).
func blobBytesUnder(runs []*Run, lo, hi []byte) (sum uint64) {
	for _, r := range runs {
		from, to := r.over(lo, hi)
		for i := from; i < to; i++ {
			t := r.At(i)
			size := t.BlobBytes()
			if bytes.Compare(t.Smallest, lo) < 0 || hi != nil && !t.Before(hi) {
				size /= 2
			}
			sum += size
		}
	}
	return sum
}
