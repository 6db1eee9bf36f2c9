package survey

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/changelog"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// readKept looks at slots, and at what is kept for them: logs whose writes are in tables, copies of logs, blob files
// that these have handles of, and ingested tables. The store itself needs none of it.
func (s *Store) readKept(names []string) error {
	acked, err := s.readSlots(names)
	if err != nil || !s.Trusted() {
		return err
	}
	kept := &s.Manifest.Slots
	for i := range kept.Parts {
		p := &kept.Parts[i]
		var needed []string
		for _, slot := range slices.Sorted(maps.Keys(acked)) {
			if acked[slot] < p.Last {
				needed = append(needed, slot)
			}
		}
		if len(needed) == 0 {
			continue
		}
		s.o.Progress("slots", i, len(kept.Parts))
		faults, err := s.readPart(p, names)
		if err != nil {
			return err
		}
		for _, d := range faults {
			d.What += "; only slots need it: drop them, and make them again: " + strings.Join(needed, ", ")
			s.Damage = append(s.Damage, d)
		}
	}
	return nil
}

// readSlots returns what slots that are not lost have acknowledged.
func (s *Store) readSlots(names []string) (acked map[string]base.SeqNum, err error) {
	acked = map[string]base.SeqNum{}
	for _, name := range names {
		if kind, _ := manifest.ParseFileName(name); kind != manifest.FileSlot {
			continue
		}
		slot := manifest.SlotOf(name)
		history, at, err := changelog.ReadPosition(s.fs, s.path(name))
		switch {
		case s.IsDamage(err):
			s.Damage = append(s.Damage, damageOf(name, err)...)
		case err != nil:
			return nil, err
		case !s.Trusted():
		case history != s.Manifest.Slots.History || at < s.Manifest.Slots.From:
			s.note("slot %s is lost: drop it, and make it again", slot)
		default:
			acked[slot] = at
		}
	}
	return acked, nil
}

// readPart returns what is wrong with the files of a part.
func (s *Store) readPart(p *manifest.KeptPart, names []string) (faults []Damage, err error) {
	files := map[string]string{} // by the names that they had in the store
	for _, name := range p.Names() {
		file := name
		if obsolete := manifest.FileName(manifest.FileKept, manifest.KeptNum(name)); slices.Contains(names, obsolete) {
			file = obsolete
		} else if !slices.Contains(names, name) {
			if !s.o.frozen { // beside a writer, consumers may have acknowledged it meanwhile
				faults = append(faults, Damage{File: name, Offset: -1, What: "the file is missing"})
			}
			continue
		}
		files[name] = file
	}
	if p.Log > 0 {
		if file := files[p.LogName()]; file != "" && len(faults) == 0 {
			return s.readKeptLog(p, file, files)
		}
		return faults, nil
	}
	for _, num := range p.Files {
		file := files[manifest.FileName(manifest.FileTable, num)]
		if _, listed := s.Manifest.Live[num]; listed || file == "" {
			continue
		}
		t := &Table{Num: num, Name: file, Level: -1, Present: true}
		if err := s.readTable(t); err != nil {
			return nil, err
		}
		faults = append(faults, t.Damage...)
	}
	return faults, nil
}

// readKeptLog returns what is wrong with a log.
func (s *Store) readKeptLog(p *manifest.KeptPart, file string, files map[string]string) (faults []Damage, err error) {
	last := base.SeqNum(0)
	v := blob.LogFiles{Open: func(num uint64) (f vfs.ReadFile, name string, err error) {
		name, kept := files[manifest.FileName(manifest.FileBlob, num)]
		if !kept {
			return nil, "", base.Corruptf(s.path(manifest.FileName(manifest.FileBlob, num)), -1,
				"a blob file that a log has handles of is not kept")
		}
		f, err = s.fs.Open(s.path(name))
		return f, s.path(name), err
	}}
	fault, err := s.Examine(file, func(f vfs.ReadFile) error {
		r := wal.NewReader(f, s.path(file), p.Log)
		left, err := Records(r, func(_ int64, record []byte) error {
			b, err := batchrepr.NewReader(record)
			if err != nil {
				return err
			}
			last = max(last, b.Last())
			err = s.readValues(record, &v)
			if s.IsDamage(err) && len(faults) == 0 {
				faults = damageOf(file, err)
			} else if !s.IsDamage(err) {
				return err
			}
			return nil
		}, func(err error) error {
			faults = append(faults, damageOf(file, err)...)
			return nil
		})
		if !r.Clean() && len(faults) == 0 {
			faults = append(faults, Damage{File: file, Offset: r.Offset(), What: "the log has lost its end"})
		}
		return errors.Join(left, err, v.Close())
	})
	switch {
	case err != nil:
		return nil, err
	case fault != nil:
		faults = append(faults, damageOf(file, fault)...)
	case last < p.Last && len(faults) == 0:
		faults = append(faults, Damage{File: file, Offset: -1,
			What: fmt.Sprintf("the log ends with write %d, and had %d", last, p.Last)})
	}
	return faults, nil
}

// readValues reads the writes of a record. A deep survey reads the values that are in blob files too.
func (s *Store) readValues(record []byte, files *blob.LogFiles) error {
	for e, err := range batchrepr.All(record) {
		if err != nil {
			return err
		}
		kind := e.Key.Kind()
		if !kind.Separated() || !s.o.Deep {
			continue
		}
		h, _, err := blob.HandleOf(kind, e.Value)
		if err != nil {
			return err
		}
		r, err := files.Reader(h.File)
		if err != nil {
			return err
		}
		value, err := r.OpenStream(e.Key.User, h)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, value); err != nil {
			return err
		}
	}
	return nil
}
