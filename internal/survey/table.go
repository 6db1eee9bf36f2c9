package survey

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Table is a sorted file that is there, or should be.
type Table struct {
	Num     uint64
	Name    string
	Level   int    // where the manifest has it; -1 if it does not list it
	Run     uint64 // of the level
	Present bool
	Size    int64
	Listing *manifest.Table   // what the manifest says of it; nil if it does not list it
	Info    *sstable.FileInfo // what the file says of itself; nil if it cannot be opened
	// Tombstones are the file's range tombstones, if Info is set.
	Tombstones []rangedel.Tombstone
	Damage     []Damage
	Unread     error // what kept the file from being read
	// Source is the name of the file that has the table's bytes, if that bears another's name: it has the id that the
	// manifest lists. Holds is, of that file, the name of the table.
	Source, Holds string
}

// File returns the name of the file that has the table's bytes.
func (t *Table) File() string { return cmp.Or(t.Source, t.Name) }

// readTables looks at every table on disk and every one that the manifest lists.
func (s *Store) readTables(names []string) error {
	tables := map[uint64]*Table{}
	for _, name := range names {
		if kind, num := manifest.ParseFileName(name); kind == manifest.FileTable {
			tables[num] = &Table{Num: num, Name: name, Level: -1, Present: true}
		}
	}
	if s.Manifest != nil {
		for num, a := range s.Manifest.Live {
			t := tables[num]
			if t == nil {
				t = &Table{Num: num, Name: manifest.FileName(manifest.FileTable, num)}
				tables[num] = t
			}
			t.Level, t.Run, t.Listing = a.Level, a.Run, &a.Table
		}
	}
	var ids map[uint64]string
	err := readEach(s, "tables", tables, func(t *Table) error {
		if t.Unread = s.readTable(t); t.Unread != nil && !s.o.ReadOn {
			return t.Unread
		}
		if t.Listing != nil && t.Info == nil && t.Unread == nil {
			if ids == nil {
				ids = s.tableIDs(tables)
			}
			if t.Unread = s.readElsewhere(t, tables, ids[t.Listing.ID]); t.Unread != nil && !s.o.ReadOn {
				return t.Unread
			}
		}
		if t.Listing != nil || s.Manifest == nil {
			s.Damage = append(s.Damage, t.Damage...)
		}
		s.Tables = append(s.Tables, *t)
		return t.Unread
	})
	for i := range s.Tables {
		s.Tables[i].Holds = tables[s.Tables[i].Num].Holds
	}
	return err
}

// tableIDs returns the names of the table files by the ids in their footers. Of several files with an id it is the one
// that the manifest lists, if that is among them.
func (s *Store) tableIDs(tables map[uint64]*Table) map[uint64]string {
	ids := map[uint64]string{}
	for _, num := range slices.Sorted(maps.Keys(tables)) {
		t := tables[num]
		if !t.Present {
			continue
		}
		_, _ = s.Examine(t.Name, func(f vfs.ReadFile) error { // a file that cannot be read has no id
			size, err := f.Size()
			if err != nil {
				return err
			}
			id := sstable.ReadID(f, size)
			if ids[id] == "" || t.Listing != nil && t.Listing.ID == id {
				ids[id] = t.Name
			}
			return nil
		})
	}
	return ids
}

// readElsewhere reads a table that the manifest lists from the file that has its id and another's name; source is
// empty if there is none. The wrong name is damage.
func (s *Store) readElsewhere(t *Table, tables map[uint64]*Table, source string) error {
	if source == "" || source == t.Name || t.Listing.ID == 0 {
		return nil
	}
	t.Source, t.Present, t.Damage = source, true, nil
	err := s.readTable(t)
	t.Damage = append([]Damage{{File: t.Name, Offset: -1,
		What: fmt.Sprintf("a table of level %d is in the file %s, which bears another's name", t.Level, source)}},
		t.Damage...)
	_, num := manifest.ParseFileName(source)
	tables[num].Holds = t.Name
	return err
}

// readEach calls read for files of one kind, by ascending numbers, and reports progress. A file that cannot be read
// ends it with an error, unless ReadOn is set. The context's error ends it too.
func readEach[T any](s *Store, kind string, files map[uint64]*T, read func(*T) error) error {
	var unread []error
	for done, num := range slices.Sorted(maps.Keys(files)) {
		if err := s.ctx.Err(); err != nil {
			return errors.Join(append(unread, err)...)
		}
		s.o.Progress(kind, done, len(files))
		err := read(files[num])
		if err != nil && !s.o.ReadOn {
			return err
		}
		unread = append(unread, err)
	}
	s.o.Progress(kind, len(files), len(files))
	return errors.Join(unread...)
}

func (s *Store) readTable(t *Table) error {
	if !t.Present {
		t.Damage = []Damage{{File: t.Name, Offset: -1, What: fmt.Sprintf("a table of level %d is missing", t.Level)}}
		return nil
	}
	fault, err := s.Examine(t.File(), func(f vfs.ReadFile) (err error) {
		if t.Size, err = f.Size(); err == nil {
			err = s.inspect(t, f)
		}
		return err
	})
	if err != nil {
		return err
	}
	if errors.Is(fault, base.ErrNewerFormat) {
		// The manifest does not tell more: a newer version may list tables of its own in one that we can read.
		return fault
	}
	if l := t.Listing; l != nil && l.Size != t.Size && errors.Is(fault, base.ErrCorruption) {
		fault = base.Corruptf(t.File(), min(t.Size, l.Size), "a table of level %d has %d bytes, and had %d when it "+
			"was written",
			t.Level, t.Size, l.Size)
	}
	if fault != nil {
		t.Damage = damageOf(t.File(), fault)
	}
	return nil
}

// inspect opens a table and checks it as deep as the options say.
func (s *Store) inspect(t *Table, f vfs.ReadFile) error {
	o := &sstable.ReaderOptions{Name: s.path(t.File()), CacheSize: -1, AnyExpansion: true}
	if t.Listing != nil {
		o.ID, o.TailSize, o.Seq = t.Listing.ID, t.Listing.TailSize, t.Listing.Seq
	}
	r, err := sstable.NewReader(onlyReader{f}, t.Size, o)
	if err != nil {
		return err
	}
	info, err := r.Info()
	if err != nil {
		return err
	}
	t.Info, t.Tombstones = info, r.Tombstones().Clip(nil, nil, nil)
	if s.o.Deep {
		err = s.verifyTable(t, r)
	} else {
		err = errors.Join(damage(r.FilterError()), damage(r.RangeFilterError()))
	}
	if t.Listing != nil {
		err = errors.Join(err, Agree(t.Listing, info))
	}
	return errors.Join(err, r.Close())
}

// verifyTable reads a whole table, and notes its handles if it is one of the store.
func (s *Store) verifyTable(t *Table, r *sstable.Reader) error {
	if t.Listing == nil || len(t.Listing.Blobs) == 0 {
		return r.Verify()
	}
	var wrong error // the first handle that cannot be
	err := r.VerifyEach(func(k base.InternalKey, value []byte) error {
		if k.Kind().Separated() && wrong == nil {
			wrong = s.noteHandle(k, value)
		}
		return nil
	})
	return errors.Join(err, wrong)
}

// damage returns why a filter is not usable, unless it is one of an application's own: stores that cannot
// decode it read past it.
func damage(err error) error {
	if errors.Is(err, filterpolicy.ErrUnknownFamily) {
		return nil
	}
	return err
}

// onlyReader is a file that a Reader does not close.
type onlyReader struct{ f vfs.ReadFile }

func (r onlyReader) ReadAt(b []byte, off int64) (int, error) { return r.f.ReadAt(b, off) }

// Agree compares a file with its entry in the manifest.
func Agree(said *manifest.Table, found *sstable.FileInfo) error {
	for _, c := range []struct {
		what        string
		listed, has uint64
	}{
		{"size", uint64(said.Size), uint64(found.Size)},
		{"entries", said.Entries, found.Entries},
		{"deletes", said.Deletes, found.Deletes},
		{"range deletes", said.RangeDeletes, found.RangeDeletes},
		{"merge operands", said.Merges, found.Merges},
		{"expiring values", said.Expiring, found.Expiring},
		{"last expiry", said.LastExpiry, found.LastExpiry},
		{"median expiry", said.ExpiryOctiles[3], found.ExpiryOctiles[3]},
		{"overwritten entries", said.Overwritten, found.Overwritten},
		{"overwritten bytes in blob files", said.Garbage.Overwritten, found.Droppable.Overwritten},
		{"expiring bytes in blob files", said.Garbage.Expiring, found.Droppable.Expiring},
		{"largest sequence number", uint64(said.LargestSeq), uint64(max(found.LargestSeq, said.Seq))},
	} {
		if c.listed != c.has {
			return fmt.Errorf("the manifest says that %s is %d, the file has %d", c.what, c.listed, c.has)
		}
	}
	if err := agreeOnBlobs(said.Blobs, tablemeta.Of(0, found, nil).Blobs); err != nil {
		return err
	}
	if found.Entries > 0 && (!said.Contains(found.Smallest) || !said.Contains(found.Largest)) {
		return errors.New("the file has keys outside the bounds that the manifest gives it")
	}
	return nil
}

// Describe makes the manifest's entry for a table that could be read. It takes the sequence number
// of an ingested file, which the file does not tell, from the present entry.
func (t *Table) Describe() manifest.Table {
	d := tablemeta.Of(t.Num, t.Info, t.Tombstones)
	if t.Listing != nil && t.Listing.Seq != 0 {
		d.Seq, d.SmallestSeq, d.LargestSeq = t.Listing.Seq, t.Listing.Seq, t.Listing.Seq
	}
	return d
}
