package version

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
)

// The live part of a blob file is the sum of what the version's tables refer to. A version has these sums by file, and
// an edit changes them by the tables that it adds and deletes. They are in no file: RecountBlobs computes them again
// from the tables.

// A LiveBlob is a blob file of a version, and what the version's tables refer to in it. It never changes.
type LiveBlob struct {
	*Blob
	LiveRecords uint64
	LiveBytes   uint64 // of these records
}

// Garbage returns the bytes of records that no table of the version refers to.
func (b *LiveBlob) Garbage() uint64 { return b.recordBytes() - b.LiveBytes }

// BlobTotals are sums over the blob files of a version.
type BlobTotals struct {
	Files       int
	Bytes       int64 // of the files
	Records     uint64
	RecordBytes uint64 // of all records
	LiveRecords uint64
	LiveBytes   uint64
}

// with returns the totals with a file added n times: 1, or -1.
func (s BlobTotals) with(b *LiveBlob, n int) BlobTotals {
	if b == nil {
		return s
	}
	sign := uint64(n) // the sums wrap round, as whole numbers do
	return BlobTotals{
		Files: s.Files + n, Bytes: s.Bytes + int64(n)*b.Size, Records: s.Records + sign*b.Records,
		RecordBytes: s.RecordBytes + sign*b.recordBytes(), LiveRecords: s.LiveRecords + sign*b.LiveRecords,
		LiveBytes: s.LiveBytes + sign*b.LiveBytes,
	}
}

// Blob returns a blob file by its number, with what is live of it; nil if v has none of that number.
func (v *Version) Blob(num uint64) *LiveBlob { return v.blobs.get(num) }

// Blobs goes through the blob files, by ascending numbers.
func (v *Version) Blobs() iter.Seq[*LiveBlob] {
	return func(yield func(*LiveBlob) bool) { v.blobs.root.all(yield) }
}

// BlobTotals returns the sums over all blob files.
func (v *Version) BlobTotals() BlobTotals { return v.blobTotals }

// BlobID returns the id of a blob file, 0 if there is none of that number.
func (v *Version) BlobID(num uint64) uint64 {
	if b := v.Blob(num); b != nil {
		return b.ID
	}
	return 0
}

// set makes b, or nothing if it is nil, what v knows of a blob file.
func (v *Version) set(num uint64, b *LiveBlob, by *byte) {
	v.blobTotals = v.blobTotals.with(v.blobs.get(num), -1).with(b, 1)
	v.blobs = v.blobs.with(num, b, by)
}

// blobChanges are by how much references to blob files change: numbers that wrap round, so that one
// that falls does so by adding.
type blobChanges map[uint64]manifest.BlobRef

// add takes in references, n times: 1, or -1.
func (c blobChanges) add(refs []manifest.BlobRef, n int) {
	for _, r := range refs {
		sum := c[r.Num]
		sum.Records += uint64(n) * r.Records
		sum.Bytes += uint64(n) * r.Bytes
		c[r.Num] = sum
	}
}

// applyBlobs makes the blob files those after an edit; its tables are in and out already. It returns an error if tables
// refer to a missing file or to more than a file has, or the edit deletes a file that tables refer to. It takes time in
// proportion to what changes.
func (v *Version) applyBlobs(e *manifest.Edit, by *byte) error {
	for _, b := range e.AddedBlobs {
		if v.Blob(b.Num) != nil || v.Has(b.Num) {
			return fmt.Errorf("there are two files of number %d", b.Num)
		}
		if b.Size < leastBlob {
			return fmt.Errorf("blob file %d has %d bytes: there are none so short", b.Num, b.Size)
		}
		added := &Blob{BlobFile: b}
		if bytes := added.recordBytes(); b.Records > bytes/blob.MinRecord {
			return fmt.Errorf("blob file %d has %d records in %d bytes: there are none so short", b.Num, b.Records,
				bytes)
		}
		v.come.blobs = append(v.come.blobs, added)
		v.set(b.Num, &LiveBlob{Blob: added}, by)
	}
	changes := blobChanges{}
	for _, t := range v.come.tables {
		if err := v.checkRefs(t.Blobs); err != nil {
			return err
		}
		changes.add(t.Blobs, 1)
	}
	for _, t := range v.gone.tables {
		changes.add(t.Blobs, -1)
	}
	for num, c := range changes {
		b := v.Blob(num)
		if b == nil {
			return fmt.Errorf("a table refers to blob file %d, which is not there", num)
		}
		next := &LiveBlob{Blob: b.Blob, LiveRecords: b.LiveRecords + c.Records, LiveBytes: b.LiveBytes + c.Bytes}
		if err := next.check(); err != nil {
			return err
		}
		v.set(num, next, by)
	}
	for _, num := range e.DeletedBlobs {
		b := v.Blob(num)
		if b == nil {
			return fmt.Errorf("blob file %d is deleted but not there", num)
		}
		if b.LiveRecords > 0 {
			return fmt.Errorf("blob file %d is deleted and tables refer to %d records of it", num, b.LiveRecords)
		}
		v.gone.blobs = append(v.gone.blobs, b.Blob)
		v.set(num, nil, by)
	}
	return nil
}

// checkRefs reports a table's references to files that are not there, or to more than one has: sums of those might
// wrap round to what can be.
func (v *Version) checkRefs(refs []manifest.BlobRef) error {
	for _, r := range refs {
		b := v.Blob(r.Num)
		if b == nil {
			return fmt.Errorf("a table refers to blob file %d, which is not there", r.Num)
		}
		if err := (&LiveBlob{Blob: b.Blob, LiveRecords: r.Records, LiveBytes: r.Bytes}).check(); err != nil {
			return err
		}
	}
	return nil
}

// check reports sums that cannot be.
func (b *LiveBlob) check() error {
	if b.LiveRecords > b.Records || b.LiveBytes > b.recordBytes() || (b.LiveRecords == 0) != (b.LiveBytes == 0) {
		return fmt.Errorf("tables refer to %d records and %d bytes of blob file %d, which has %d and %d",
			b.LiveRecords, b.LiveBytes, b.Num, b.Records, b.recordBytes())
	}
	return nil
}

// DropBlobs adds to an edit of v the deletion of each blob file to which no table refers after it, and did before. The
// edit must have all of its tables.
func (v *Version) DropBlobs(e *manifest.Edit) {
	if v.blobTotals.Files == 0 {
		return
	}
	changes := blobChanges{}
	for _, d := range e.Deleted {
		if p := v.files.get(d.Num); p != nil {
			changes.add(p.table.Blobs, -1)
		}
	}
	for i := range e.Added {
		changes.add(e.Added[i].Table.Blobs, 1)
	}
	for _, num := range slices.Sorted(maps.Keys(changes)) {
		if b := v.Blob(num); b != nil && b.LiveRecords > 0 && b.LiveRecords+changes[num].Records == 0 {
			e.DeletedBlobs = append(e.DeletedBlobs, num)
		}
	}
}

// RecountBlobs counts again what the tables refer to. It returns an error if the version has other
// sums, or a file that no table refers to. It takes O(tables).
func (v *Version) RecountBlobs() error {
	counted := blobChanges{}
	v.All(func(_ int, t *Table) { counted.add(t.Blobs, 1) })
	var errs []error
	totals := BlobTotals{}
	for b := range v.Blobs() {
		c := counted[b.Num]
		if c.Records != b.LiveRecords || c.Bytes != b.LiveBytes {
			errs = append(errs, fmt.Errorf("blob file %d: %d records and %d bytes are live, and tables refer to "+
				"%d and %d", b.Num, b.LiveRecords, b.LiveBytes, c.Records, c.Bytes))
		}
		if c.Records == 0 {
			errs = append(errs, fmt.Errorf("blob file %d: no table refers to it", b.Num))
		}
		delete(counted, b.Num)
		totals = totals.with(b, 1)
	}
	for num := range counted {
		errs = append(errs, fmt.Errorf("a table refers to blob file %d, which is not there", num))
	}
	if totals != v.blobTotals {
		errs = append(errs, fmt.Errorf("sums over blob files are %+v, counted %+v", v.blobTotals, totals))
	}
	return errors.Join(errs...)
}

// RefersTo reports whether the table has values in any of some blob files.
func (t *Table) RefersTo(blobs map[uint64]bool) bool {
	return slices.ContainsFunc(t.Blobs, func(r manifest.BlobRef) bool { return blobs[r.Num] })
}

// ReferringTo returns the tables that refer to any of some blob files, by run, the newest first, and then in key
// order. It takes the time of a look at all references.
func (v *Version) ReferringTo(blobs map[uint64]bool) (tables []*Table) {
	for _, r := range v.Runs {
		if r.Totals().BlobBytes == 0 {
			continue
		}
		for t := range r.Where(func(s *Totals) bool { return s.BlobBytes > 0 }) {
			if t.RefersTo(blobs) {
				tables = append(tables, t)
			}
		}
	}
	return tables
}
