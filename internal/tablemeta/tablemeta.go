// Package tablemeta makes the manifest's entry for a sorted file from what the file says
// about itself. Neither package manifest nor package sstable knows the other. A Writer
// writes the files of a flush or a compaction and returns their entries.
package tablemeta

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
)

// Of returns the entry for the file with this number. Its bounds span the keys and the file's range tombstones, which
// may come in any order. It keeps the keys of info, which must not change afterwards, and nothing of tombs.
func Of(num uint64, info *sstable.FileInfo, tombs []rangedel.Tombstone) manifest.Table {
	t := manifest.Table{
		Num: num, ID: info.ID, Size: info.Size, TailSize: info.TailSize,
		SmallestSeq: info.SmallestSeq, LargestSeq: info.LargestSeq,
		Entries: info.Entries, Deletes: info.Deletes, RangeDeletes: info.RangeDeletes,
		Merges: info.Merges, Expiring: info.Expiring, LastExpiry: info.LastExpiry,
		ExpiryOctiles: info.ExpiryOctiles, Overwritten: info.Overwritten, DenseDeletes: info.DenseDeletes,
		FilterBytes: info.FilterBytes, IndexBytes: info.IndexBytes,
		Garbage: manifest.Garbage{Droppable: info.Droppable},
	}
	for _, r := range info.Blobs {
		t.Blobs = append(t.Blobs, manifest.BlobRef{Num: r.Num, Records: r.Records, Bytes: r.Bytes})
	}
	if info.Entries > 0 {
		t.Smallest, t.Largest = info.Smallest, info.Largest
	}
	if len(tombs) == 0 {
		return t
	}
	first := slices.MinFunc(tombs, func(a, b rangedel.Tombstone) int { return bytes.Compare(a.Start, b.Start) })
	last := slices.MaxFunc(tombs, func(a, b rangedel.Tombstone) int { return rangedel.CompareEnds(a.End, b.End) })
	if t.Entries == 0 || bytes.Compare(first.Start, t.Smallest) < 0 {
		t.Smallest = append([]byte{}, first.Start...) // not nil, even where it is empty
	}
	// An exclusive end that is the largest key itself does not reach beyond it.
	if t.Entries == 0 || rangedel.CompareEnds(last.End, t.Largest) > 0 {
		t.Largest, t.LargestExclusive = bytes.Clone(last.End), last.End != nil
	}
	return t
}
