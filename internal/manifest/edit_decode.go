package manifest

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// DecodeEdit decodes an edit. The result shares no memory with b.
func DecodeEdit(b []byte) (*Edit, error) {
	e := &Edit{}
	added := addedTables{edit: e}
	d := newDecoder(b)
	for len(d.Rest) > 0 && !d.Bad {
		tag := d.Uvarint()
		f := newDecoder(d.Bytes())
		f.Bad = d.Bad
		switch tag {
		case tagStoreID:
			e.StoreID = f.Uvarint()
		case tagNextFile:
			e.NextFile = f.Uvarint()
		case tagLogNum:
			e.LogNum = f.Uvarint()
		case tagLastSeq:
			e.LastSeq = base.SeqNum(f.Uvarint())
		case tagClosed:
			e.Closed = base.SeqNum(f.Uvarint())
		case tagRestored:
			e.Restored = f.Uvarint()
		case tagDeleted:
			e.Deleted = append(e.Deleted, DeletedTable{Level: f.level(), Num: f.Uvarint()})
		case tagAdded:
			e.Added = append(e.Added, f.table())
		case tagIngested:
			f.Bad = f.Bad || !added.ingested(f.Uvarint(), base.SeqNum(f.Uvarint()))
		case tagRun:
			f.Bad = f.Bad || !added.inRun(f.Uvarint(), f.Uvarint(), false)
		case tagLevel0Run:
			f.Bad = f.Bad || !added.inRun(f.Uvarint(), f.Uvarint(), true)
		case tagWaste:
			f.Bad = f.Bad || !added.waste(&f)
		case tagDense:
			f.Bad = f.Bad || !added.dense(f.Uvarint(), f.Uvarint())
		case tagFeatures:
			e.Features = Features(f.Uvarint())
			if unknown := e.Features &^ knownFeatures; unknown != 0 && !f.Bad {
				return nil, fmt.Errorf("%w: it has features %#x", ErrNewerFormat, uint64(unknown))
			}
		case tagMerger:
			e.Merger, f.Rest = string(f.Rest), nil
		case tagAddedKinds:
			e.Added = append(e.Added, f.tableWithKinds())
		case tagAddedBlob:
			e.AddedBlobs = append(e.AddedBlobs, f.blobFile())
		case tagDeletedBlob:
			e.DeletedBlobs = append(e.DeletedBlobs, f.Uvarint())
		case tagBlobRefs:
			f.Bad = f.Bad || !added.refs(&f)
		case tagGarbage:
			f.Bad = f.Bad || !added.garbage(&f)
		case tagHistory, tagKeptLog, tagKeptIngest, tagKeptCopy:
			e.Slots.decode(tag, &f)
		default:
			if d.Bad {
				return nil, errEdit
			}
			return nil, fmt.Errorf("%w: a version edit has a field %d", ErrNewerFormat, tag)
		}
		d.Bad = d.Bad || f.Bad || len(f.Rest) > 0
	}
	if d.Bad || max(e.LastSeq, e.Closed, e.Slots.From) > base.MaxSeqNum {
		return nil, errEdit
	}
	return e, nil
}

type decoder struct{ base.Decoder }

func newDecoder(b []byte) decoder { return decoder{base.Decoder{Rest: b}} }

func (d *decoder) size() int64 {
	v := d.Uvarint()
	d.Bad = d.Bad || v > 1<<62
	return int64(v)
}

func (d *decoder) level() int {
	v := d.Uvarint()
	d.Bad = d.Bad || v >= NumLevels
	return int(v)
}

func (d *decoder) table() AddedTable {
	a := AddedTable{Level: d.level()}
	t := &a.Table
	t.Num, t.ID = d.Uvarint(), d.Uvarint()
	t.Size, t.TailSize = d.size(), d.size()
	t.SmallestSeq, t.LargestSeq = base.SeqNum(d.Uvarint()), base.SeqNum(d.Uvarint())
	t.Entries, t.Deletes, t.RangeDeletes = d.Uvarint(), d.Uvarint(), d.Uvarint()
	t.FilterBytes, t.IndexBytes = d.Uvarint(), d.Uvarint()
	upper := d.Uvarint() // one byte, as a small uvarint is
	t.Smallest, t.Largest = append([]byte{}, d.Bytes()...), append([]byte{}, d.Bytes()...)
	t.LargestExclusive = upper == upperExclusive
	if upper == upperUnbounded {
		d.Bad = d.Bad || len(t.Largest) > 0
		t.Largest = nil
	}
	d.Bad = d.Bad || t.SmallestSeq > base.MaxSeqNum || t.LargestSeq > base.MaxSeqNum
	d.Bad = d.Bad || upper > upperUnbounded || rangedel.CompareEnds(t.Smallest, t.Largest) > 0
	return a
}

// tableWithKinds is table with the counts of kinds that version 1 had not.
func (d *decoder) tableWithKinds() AddedTable {
	a := d.table()
	t := &a.Table
	t.Merges, t.Expiring, t.LastExpiry = d.Uvarint(), d.Uvarint(), d.Uvarint()
	d.Bad = d.Bad || !t.kinds()
	return a
}
