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
	b := BlobFile{Num: d.Uvarint(), ID: d.Uvarint(), Size: d.size(), Records: d.Uvarint(), ValueBytes: d.Uvarint()}
	d.Bad = d.Bad || b.Num == 0 || b.ID == 0 || b.Records == 0
	return b
}

// refs sets what a table that the edit adds has in blob files, and reports whether that can be.
func (a *addedTables) refs(d *decoder) bool {
	at := a.find(d.Uvarint())
	if at == nil || len(at.Table.Blobs) > 0 || len(d.Rest) == 0 {
		return false
	}
	t, last, records := &at.Table, uint64(0), uint64(0)
	for len(d.Rest) > 0 && !d.Bad {
		r := BlobRef{Num: d.Uvarint(), Records: d.Uvarint(), Bytes: d.Uvarint()}
		if r.Num <= last || r.Records == 0 || r.Bytes < r.Records || r.Records > t.Entries-records {
			return false
		}
		last = r.Num
		records += r.Records
		t.Blobs = append(t.Blobs, r)
	}
	return !d.Bad
}

// garbage sets what field 23 says of a table that the edit adds, and reports whether that can be.
func (a *addedTables) garbage(d *decoder) bool {
	at := a.find(d.Uvarint())
	if at == nil || at.Table.Garbage != (Garbage{}) {
		return false
	}
	g := &at.Table.Garbage
	g.HiddenBytes, g.Droppable = d.Uvarint(), d.Droppable()
	return !d.Bad && *g != (Garbage{}) && max(g.Overwritten, g.Expiring) <= at.Table.BlobBytes()
}
