package survey

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Blob is a file of large values that is there, or should be.
type Blob struct {
	Num     uint64
	Name    string
	Present bool
	Size    int64
	Listing *manifest.BlobFile // what the manifest says of it; nil if it does not list it
	ID      uint64             // as the file says, in its header or else its footer; 0: neither does
	Info    blob.Info          // as header and footer say; nothing if they, or an unlisted file of a log, are not whole
	Logged  bool               // logs with writes that may be in no table have handles of its values
	Records uint64             // that were found, with right keys; of a deep survey
	// LargestSeq is the last write of which the file has the value; of a deep survey.
	LargestSeq uint64
	Damage     []Damage
	Unread     error // what kept the file from being read
}

// readBlobs looks at every blob file on disk and every one that the manifest lists. Tables have been
// read: a deep survey has their handles.
func (s *Store) readBlobs(names []string) error {
	blobs := map[uint64]*Blob{}
	for _, name := range names {
		if kind, num := manifest.ParseFileName(name); kind == manifest.FileBlob {
			blobs[num] = &Blob{Num: num, Name: name, Present: true}
		}
	}
	if s.Manifest != nil {
		for num, l := range s.Manifest.Blobs {
			b := blobs[num]
			if b == nil {
				b = &Blob{Num: num, Name: l.Name()}
				blobs[num] = b
			}
			b.Listing = &l
		}
	}
	defer s.sumReferences() // tables may refer to files where there are none
	if len(blobs) == 0 {
		return nil
	}
	return readEach(s, "blob files", blobs, func(b *Blob) error {
		if b.Unread = s.readBlob(b); b.Unread != nil && !s.o.ReadOn {
			return b.Unread
		}
		if b.Listing != nil || s.Manifest == nil {
			s.Damage = append(s.Damage, b.Damage...)
		}
		s.Blobs = append(s.Blobs, *b)
		return b.Unread
	})
}

// isOfLog reports whether a file that the manifest does not list is the blob file of a log.
func isOfLog(f vfs.ReadFile, size int64) bool {
	_, byCommit, err := blob.OpenUnfinished(onlyReader{f}, size, blob.ReaderOptions{})
	return err == nil && byCommit
}

// keepLogged finds the blob files that only logs refer to, which no manifest lists yet. Logs have been read.
func (s *Store) keepLogged() {
	logged := map[uint64]bool{}
	for _, l := range s.LiveLogs() {
		maps.Copy(logged, l.Blobs)
	}
	for i := range s.Blobs {
		b := &s.Blobs[i]
		if b.Logged = logged[b.Num]; b.Logged && b.Listing == nil && s.Manifest != nil {
			s.Damage = append(s.Damage, b.Damage...)
		}
		delete(logged, b.Num)
	}
	for _, num := range slices.Sorted(maps.Keys(logged)) {
		s.damaged(manifest.FileName(manifest.FileBlob, num), -1, "a blob file is missing of which a log has handles")
	}
}

func (s *Store) readBlob(b *Blob) error {
	if !b.Present {
		what := fmt.Sprintf("a blob file is missing, in which tables have %d values", s.Manifest.referred(b.Num))
		b.Damage = []Damage{{File: b.Name, Offset: -1, What: what}}
		return nil
	}
	fault, err := s.Examine(b.Name, func(f vfs.ReadFile) (err error) {
		if b.Size, err = f.Size(); err == nil {
			err = s.inspectBlob(b, f)
		}
		return err
	})
	if err != nil {
		return err
	}
	if errors.Is(fault, base.ErrNewerFormat) {
		return fault
	}
	if fault != nil {
		b.Damage = damageOf(b.Name, fault)
	}
	return nil
}

// referred returns how many records of a blob file tables refer to.
func (m *Manifest) referred(blob uint64) (n uint64) {
	for _, a := range m.Live {
		for _, r := range a.Table.Blobs {
			if r.Num == blob {
				n += r.Records
			}
		}
	}
	return n
}

// inspectBlob checks a blob file as thoroughly as the options say.
func (s *Store) inspectBlob(b *Blob, f vfs.ReadFile) error {
	l := b.Listing
	info, err := blob.ReadInfo(onlyReader{f}, b.Size, s.path(b.Name))
	b.Info, b.ID = info, blob.ReadID(onlyReader{f}, b.Size)
	if l == nil && isOfLog(f, b.Size) && (err != nil || s.Manifest != nil) {
		// It may be torn: the log ends at the first value that is not whole, unless that is damage.
		if err == nil && s.o.Deep && s.verifyLogFile(b, f) != nil {
			b.Info = blob.Info{}
		}
		return nil
	}
	info.Num = b.Num
	if l != nil && err == nil {
		if found := (manifest.BlobFile{Num: b.Num, ID: info.ID, Size: info.Size, Records: info.Records,
			ValueBytes: info.ValueBytes}); found != *l {
			err = base.Corruptf(b.Name, -1, "the manifest says that the file has id %#x, %d bytes, %d records and %d "+
				"bytes of values; it has %#x, %d, %d and %d", l.ID, l.Size, l.Records, l.ValueBytes, info.ID, info.Size,
				info.Records, info.ValueBytes)
		}
	}
	id := info.ID
	if l != nil {
		id = l.ID
	}
	if !s.o.Deep || id == 0 || b.Size < blob.MinSize {
		return err
	}
	r, opened := blob.NewReader(onlyReader{f}, b.Size, blob.ReaderOptions{Name: s.path(b.Name), ID: id})
	if opened != nil {
		return opened
	}
	handles := s.handles[b.Num]
	delete(s.handles, b.Num)
	verified := r.Verify(b.Num, func(h blob.Handle, rec blob.Record) error {
		b.Records++
		b.LargestSeq = max(b.LargestSeq, uint64(rec.Seq))
		handles.meet(rec.Key, h)
		return nil
	})
	if verified != nil {
		return verified // it says the same of the footer
	}
	if first, last, ok := handles.left(); !ok {
		return errors.Join(err, base.Corruptf(b.Name, -1, "a table has a handle of one of the records %d to %d, and "+
			"the record is another, or there is none", first, last))
	}
	return err
}

func (s *Store) verifyLogFile(b *Blob, f vfs.ReadFile) error {
	r, err := blob.NewReader(onlyReader{f}, b.Size, blob.ReaderOptions{Name: s.path(b.Name), ID: b.ID})
	if err != nil {
		return err
	}
	return r.Verify(b.Num, nil)
}

// sumReferences holds the manifest's lists against each other: tables refer to files that are listed, to
// no more than these have, and to each of them.
func (s *Store) sumReferences() {
	m := s.Manifest
	if m == nil || m.Broken {
		return
	}
	sums := map[uint64]manifest.BlobRef{}
	for _, a := range m.Live {
		for _, r := range a.Table.Blobs {
			sum := sums[r.Num]
			sums[r.Num] = manifest.BlobRef{Num: r.Num, Records: sum.Records + r.Records, Bytes: sum.Bytes + r.Bytes}
		}
	}
	for _, num := range slices.Sorted(maps.Keys(sums)) {
		sum, l := sums[num], m.Blobs[num]
		if l.Num == 0 {
			s.damaged(m.Name, -1, "tables refer to blob file %d, which is not listed", num)
		} else if sum.Records > l.Records || sum.Bytes > uint64(l.Size)-blob.MinSize {
			s.damaged(m.Name, -1, "tables refer to %d records and %d bytes of blob file %d, which has %d records in "+
				"%d bytes", sum.Records, sum.Bytes, num, l.Records, l.Size)
		}
	}
	for _, l := range slices.SortedFunc(maps.Values(m.Blobs), func(a, b manifest.BlobFile) int {
		return cmp.Compare(a.Num, b.Num)
	}) {
		if sums[l.Num].Records == 0 {
			s.damaged(m.Name, -1, "no table refers to blob file %d", l.Num)
		}
	}
}

// agreeOnBlobs compares what a table refers to with its entry in the manifest.
func agreeOnBlobs(said, found []manifest.BlobRef) error {
	if slices.Equal(said, found) {
		return nil
	}
	return fmt.Errorf("the manifest says that the table refers to blob files %v, the file says %v", said, found)
}
