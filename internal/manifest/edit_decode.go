package manifest

import (
	"encoding/binary"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// DecodeEdit decodes an edit. The result shares no memory with b.
func DecodeEdit(b []byte) (*Edit, error) {
	e := &Edit{}
	added := addedTables{edit: e}
	d := decoder{b: b}
	for len(d.b) > 0 && !d.bad {
		tag := d.uvarint()
		f := decoder{b: d.bytes()}
		f.bad = d.bad
		switch tag {
		case tagStoreID:
			e.StoreID = f.uvarint()
		case tagNextFile:
			e.NextFile = f.uvarint()
		case tagLogNum:
			e.LogNum = f.uvarint()
		case tagLastSeq:
			e.LastSeq = base.SeqNum(f.uvarint())
		case tagClosed:
			e.Closed = base.SeqNum(f.uvarint())
		case tagRestored:
			e.Restored = f.uvarint()
		case tagDeleted:
			e.Deleted = append(e.Deleted, DeletedTable{Level: f.level(), Num: f.uvarint()})
		case tagAdded:
			e.Added = append(e.Added, f.table())
		case tagIngested:
			f.bad = f.bad || !added.ingested(f.uvarint(), base.SeqNum(f.uvarint()))
		case tagRun:
			f.bad = f.bad || !added.inRun(f.uvarint(), f.uvarint(), false)
		case tagLevel0Run:
			f.bad = f.bad || !added.inRun(f.uvarint(), f.uvarint(), true)
		case tagWaste:
			f.bad = f.bad || !added.waste(&f)
		case tagDense:
			f.bad = f.bad || !added.dense(f.uvarint(), f.uvarint())
		case tagFeatures:
			e.Features = Features(f.uvarint())
			if unknown := e.Features &^ knownFeatures; unknown != 0 && !f.bad {
				return nil, fmt.Errorf("%w: it has features %#x", ErrNewerFormat, uint64(unknown))
			}
		case tagMerger:
			e.Merger, f.b = string(f.b), nil
		case tagAddedKinds:
			e.Added = append(e.Added, f.tableWithKinds())
		case tagAddedBlob:
			e.AddedBlobs = append(e.AddedBlobs, f.blobFile())
		case tagDeletedBlob:
			e.DeletedBlobs = append(e.DeletedBlobs, f.uvarint())
		case tagBlobRefs:
			f.bad = f.bad || !added.refs(&f)
		case tagGarbage:
			f.bad = f.bad || !added.garbage(&f)
		default:
			if d.bad {
				return nil, errEdit
			}
			return nil, fmt.Errorf("%w: a version edit has a field %d", ErrNewerFormat, tag)
		}
		d.bad = d.bad || f.bad || len(f.b) > 0
	}
	if d.bad || max(e.LastSeq, e.Closed) > base.MaxSeqNum {
		return nil, errEdit
	}
	return e, nil
}

// A decoder takes values off a slice and remembers whether one was not there.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || d.bad {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if d.bad || n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) size() int64 {
	v := d.uvarint()
	d.bad = d.bad || v > 1<<62
	return int64(v)
}

func (d *decoder) level() int {
	v := d.uvarint()
	d.bad = d.bad || v >= NumLevels
	return int(v)
}

func (d *decoder) table() AddedTable {
	a := AddedTable{Level: d.level()}
	t := &a.Table
	t.Num, t.ID = d.uvarint(), d.uvarint()
	t.Size, t.TailSize = d.size(), d.size()
	t.SmallestSeq, t.LargestSeq = base.SeqNum(d.uvarint()), base.SeqNum(d.uvarint())
	t.Entries, t.Deletes, t.RangeDeletes = d.uvarint(), d.uvarint(), d.uvarint()
	t.FilterBytes, t.IndexBytes = d.uvarint(), d.uvarint()
	upper := d.uvarint() // one byte, as a small uvarint is
	t.Smallest, t.Largest = append([]byte{}, d.bytes()...), append([]byte{}, d.bytes()...)
	t.LargestExclusive = upper == upperExclusive
	if upper == upperUnbounded {
		d.bad = d.bad || len(t.Largest) > 0
		t.Largest = nil
	}
	d.bad = d.bad || t.SmallestSeq > base.MaxSeqNum || t.LargestSeq > base.MaxSeqNum
	d.bad = d.bad || upper > upperUnbounded || rangedel.CompareEnds(t.Smallest, t.Largest) > 0
	return a
}

// tableWithKinds is table with the counts of kinds that version 1 had not.
func (d *decoder) tableWithKinds() AddedTable {
	a := d.table()
	t := &a.Table
	t.Merges, t.Expiring, t.LastExpiry = d.uvarint(), d.uvarint(), d.uvarint()
	d.bad = d.bad || !t.kinds()
	return a
}
