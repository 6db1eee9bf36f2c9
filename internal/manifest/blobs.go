package manifest

import "github.com/siftkv/siftkv/internal/base"

// A BlobFile describes a file of blob values. Its name is FileName(FileBlob, Num).
type BlobFile struct {
	Num        uint64
	ID         uint64 // in every checksum of the file
	Size       int64  // bytes
	Records    uint64
	ValueBytes uint64 // of all values, as they were given
}

// Name returns the base name of the file.
func (b *BlobFile) Name() string { return FileName(FileBlob, b.Num) }

// A BlobRef says what a table has in a blob file: each record is referred to by one entry of one table
// of a store at most.
type BlobRef struct {
	Num     uint64 // of the blob file
	Records uint64
	Bytes   uint64 // that these records take there
}

// Garbage says how many bytes in blob files are free, now or at some time, once a table is rewritten or merged.
type Garbage struct {
	HiddenBytes    uint64 // about what its entries hide in older tables
	base.Droppable        // of its own records
}

// appendBlobs appends what an edit says of blob files, field by field.
func (e *Edit) appendBlobs(field func(tag uint64, body []byte)) {
	for i := range e.AddedBlobs {
		b := &e.AddedBlobs[i]
		field(tagAddedBlob, appendUvarints(nil, b.Num, b.ID, uint64(b.Size), b.Records, b.ValueBytes))
	}
	for _, num := range e.DeletedBlobs {
		field(tagDeletedBlob, appendUvarints(nil, num))
	}
	for i := range e.Added {
		t := &e.Added[i].Table
		if len(t.Blobs) == 0 {
			continue
		}
		body := appendUvarints(nil, t.Num)
		for _, r := range t.Blobs {
			body = appendUvarints(body, r.Num, r.Records, r.Bytes)
		}
		field(tagBlobRefs, body)
	}
	for i := range e.Added {
		if t := &e.Added[i].Table; t.Garbage != (Garbage{}) {
			field(tagGarbage, t.Garbage.Append(appendUvarints(nil, t.Num, t.Garbage.HiddenBytes)))
		}
	}
}

// BlobBytes returns the bytes that the table's records take in blob files.
func (t *Table) BlobBytes() (sum uint64) {
	for _, r := range t.Blobs {
		sum += r.Bytes
	}
	return sum
}

func (d *decoder) blobFile() BlobFile {
	b := BlobFile{Num: d.uvarint(), ID: d.uvarint(), Size: d.size(), Records: d.uvarint(), ValueBytes: d.uvarint()}
	d.bad = d.bad || b.Num == 0 || b.ID == 0 || b.Records == 0
	return b
}

// refs sets what a table that the edit adds has in blob files, and reports whether that can be.
func (a *addedTables) refs(d *decoder) bool {
	at := a.find(d.uvarint())
	if at == nil || len(at.Table.Blobs) > 0 || len(d.b) == 0 {
		return false
	}
	t, last, records := &at.Table, uint64(0), uint64(0)
	for len(d.b) > 0 && !d.bad {
		r := BlobRef{Num: d.uvarint(), Records: d.uvarint(), Bytes: d.uvarint()}
		if r.Num <= last || r.Records == 0 || r.Bytes < r.Records || r.Records > t.Entries-records {
			return false
		}
		last = r.Num
		records += r.Records
		t.Blobs = append(t.Blobs, r)
	}
	return !d.bad
}

// garbage sets what field 23 says of a table that the edit adds, and reports whether that can be.
func (a *addedTables) garbage(d *decoder) (ok bool) {
	at := a.find(d.uvarint())
	if at == nil || at.Table.Garbage != (Garbage{}) {
		return false
	}
	g := &at.Table.Garbage
	g.HiddenBytes = d.uvarint()
	g.Droppable, d.b, ok = base.CutDroppable(d.b)
	return ok && !d.bad && *g != (Garbage{}) && max(g.Overwritten, g.Expiring) <= at.Table.BlobBytes()
}
