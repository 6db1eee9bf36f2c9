package sstable

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// A BlobRef says what a file's handles refer to in one blob file.
type BlobRef struct {
	Num     uint64 // of the blob file
	ID      uint64 // of the blob file; in every checksum of it
	Records uint64
	Bytes   uint64 // that these records take there
}

// BlobRefs are the blob files that a file refers to, by number. On disk each is four uvarints: number,
// id, records, bytes.
type BlobRefs []BlobRef

func (rs BlobRefs) encode() (dst []byte) {
	for _, r := range rs {
		for _, n := range []uint64{r.Num, r.ID, r.Records, r.Bytes} {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

// cutBlobRefs decodes all of b. It reports false if that is not a list with something in it, by ascending numbers.
func cutBlobRefs(b []byte) (rs BlobRefs, ok bool) {
	last := uint64(0)
	for d := (base.Decoder{Rest: b}); len(d.Rest) > 0; {
		r := BlobRef{Num: d.Uvarint(), ID: d.Uvarint(), Records: d.Uvarint(), Bytes: d.Uvarint()}
		if d.Bad || r.Num <= last || r.ID == 0 || r.Records == 0 || r.Bytes == 0 {
			return nil, false
		}
		last = r.Num
		rs = append(rs, r)
	}
	return rs, len(rs) > 0
}

// A refTally counts references, without the ids of the files. Handles of one file mostly follow each other.
type refTally struct {
	refs  []BlobRef
	bytes uint64         // of all records
	byNum map[uint64]int // places in refs; nil up to the second file
	last  int
}

func (t *refTally) add(h blob.Handle) {
	if len(t.refs) == 0 || t.refs[t.last].Num != h.File {
		t.last = t.place(h.File)
	}
	r := &t.refs[t.last]
	r.Records++
	r.Bytes += uint64(h.Length)
	t.bytes += uint64(h.Length)
}

// place returns where a blob file is in refs.
func (t *refTally) place(num uint64) int {
	if t.byNum == nil {
		t.byNum = map[uint64]int{}
		if len(t.refs) > 0 {
			t.byNum[t.refs[0].Num] = 0
		}
	}
	i, ok := t.byNum[num]
	if !ok {
		i = len(t.refs)
		t.byNum[num], t.refs = i, append(t.refs, BlobRef{Num: num})
	}
	return i
}

// sorted returns what was counted, by number.
func (t *refTally) sorted() BlobRefs {
	refs := slices.Clone(t.refs)
	sort.Slice(refs, func(i, j int) bool { return refs[i].Num < refs[j].Num })
	return refs
}

// withoutIDs returns the list without the ids of the files.
func (rs BlobRefs) withoutIDs() BlobRefs {
	rs = slices.Clone(rs)
	for i := range rs {
		rs[i].ID = 0
	}
	return rs
}
