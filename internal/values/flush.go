package values

import (
	"errors"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/version"
)

// A Flush is a flush of memtables, as far as it concerns the unlisted blob files that they hold.
type Flush struct {
	s        *Store
	mems     []*memtable.Memtable
	copied   map[uint64]bool // files that must not be listed, by number: their values are copied
	unneeded []*File         // that no table refers to
}

var errUnfinished = errors.New("siftkv: the log was abandoned before its end")

// Flush begins a flush of memtables. It makes the files of their logs durable, and closes them for writing.
func (s *Store) Flush(mems []*memtable.Memtable) *Flush {
	fl := &Flush{s: s, mems: mems}
	for _, f := range of(mems) {
		if f.log == nil {
			continue
		}
		err := errUnfinished
		if f.w == nil {
			err = f.out.Sync()
		}
		if err != nil {
			if fl.copied == nil {
				fl.copied = map[uint64]bool{}
			}
			fl.copied[f.Num] = true
			s.Log.Warn("a log's values are copied, since their file is not whole", "file", s.Blobs.Path(f.Num),
				"error", err)
		}
		if err := f.out.Close(); err != nil {
			s.Log.Warn("a log's blob file could not be closed", "error", err)
		}
	}
	return fl
}

// Whole reports whether the values of all logs are whole, and durable, in their files.
func (fl *Flush) Whole() bool { return len(fl.copied) == 0 }

// FilesOf returns the numbers of the blob files that the records of a memtable's log have handles of.
func FilesOf(m *memtable.Memtable) (nums []uint64) {
	for _, f := range of([]*memtable.Memtable{m}) {
		nums = append(nums, f.Num)
	}
	return nums
}

// Inline returns a function that replaces handles of files that must not be listed by their values; nil if there are
// none.
func (fl *Flush) Inline(v *version.Version) func(base.InternalKey, []byte) (base.InternalKey, []byte, error) {
	if fl == nil || len(fl.copied) == 0 {
		return nil
	}
	var buf []byte
	return func(k base.InternalKey, stored []byte) (base.InternalKey, []byte, error) {
		h, expiry, err := HandleOf(k.User, stored, k.Kind())
		if err != nil || !fl.copied[h.File] {
			return k, stored, err
		}
		buf = buf[:0]
		if expiry > 0 {
			buf = base.AppendExpiry(buf, expiry)
		}
		buf, err = fl.s.Append(buf, v, k.User, h)
		return base.MakeKey(k.User, k.SeqNum(), k.Kind().Inline()), buf, err
	}
}

// List lists in the edit of the flush the unlisted blob files that its tables refer to.
func (fl *Flush) List(e *manifest.Edit) { fl.unneeded = List(e, fl.mems) }

// Installed is called when the tables of version v have the contents of the memtables. The files of v stay as long as
// the memtables are read, whatever versions come after. Those that no table refers to are removed then.
func (fl *Flush) Installed(v *version.Version) {
	for _, m := range fl.mems {
		if m.HoldsAny() {
			v.Ref()
			m.Hold(heldVersion{fl.s, v}, 0)
		}
	}
	fl.s.mu.Lock()
	defer fl.s.mu.Unlock()
	for _, f := range fl.unneeded {
		f.unneeded = true
	}
}

// List lists in an edit the blob files of memtables that its tables refer to. It returns the others.
func List(e *manifest.Edit, mems []*memtable.Memtable) (unneeded []*File) {
	files := of(mems)
	if len(files) == 0 {
		return nil
	}
	listed := map[uint64]bool{}
	for i := range e.Added {
		for _, r := range e.Added[i].Table.Blobs {
			listed[r.Num] = false
		}
	}
	for _, f := range files {
		done, referred := listed[f.Num]
		switch {
		case !referred:
			unneeded = append(unneeded, f)
		case !done:
			e.AddedBlobs = append(e.AddedBlobs, f.BlobFile)
			listed[f.Num] = true
		}
	}
	return unneeded
}

// A heldVersion is a version that a memtable holds.
type heldVersion struct {
	s *Store
	v *version.Version
}

func (h heldVersion) Release() { h.s.Cleaner.Unref(h.v) }
