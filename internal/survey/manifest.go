package survey

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Manifest is what could be read of a manifest: every version edit that checks out, also past damage.
type Manifest struct {
	Num   uint64
	Name  string
	Edits int
	// First is the first edit, without its tables, and with the features and the merger of all: what is not listed here
	// may be in it.
	First    manifest.Edit
	StoreID  uint64
	NextFile uint64
	LogNum   uint64 // writes in logs with smaller numbers are in tables
	Slots    manifest.Kept
	LastSeq  uint64
	Live     map[uint64]manifest.AddedTable
	Dead     map[uint64]bool // tables that some edit deleted for good
	Blobs    map[uint64]manifest.BlobFile
	// DeadBlobs are the blob files that some edit deleted: file numbers are used once.
	DeadBlobs map[uint64]bool
	Closed    bool // its end is there: nothing was cut off
	// ClosedSeq is, after a clean close, the last write in the files; or 0.
	ClosedSeq uint64
	// Missing are, after a clean close, the writes up to ClosedSeq that are neither in tables nor in logs.
	Missing []SeqRange
	// Broken is set if edits are damaged in a way that no crash explains, or the
	// description of the whole store, which comes first, is missing.
	Broken bool
	// Trusted says that the lists are those of the store: nothing is damaged, and the files agree.
	Trusted bool
}

// readManifests finds and reads the manifest in force. If CURRENT does not tell, it
// is the newest that describes a whole store.
func (s *Store) readManifests(names []string) error {
	nums := manifest.Numbers(names, manifest.FileManifest, 0)
	slices.Reverse(nums)
	num, err := manifest.Current(s.fs, s.Dir)
	switch {
	case err == nil:
		s.Current = manifest.FileName(manifest.FileManifest, num)
		if !slices.Contains(nums, num) {
			s.damaged(s.Current, -1, "the manifest in force is missing")
			break
		}
		nums = append([]uint64{num}, slices.DeleteFunc(nums, func(n uint64) bool { return n == num })...)
	case errors.Is(err, fs.ErrNotExist):
		s.damaged(manifest.CurrentName, -1, "the pointer to the manifest is missing")
	case errors.Is(err, base.ErrCorruption), s.aboutBytes(err):
		s.Damage = append(s.Damage, damageOf(manifest.CurrentName, err)...)
	default:
		return err
	}
	var best *Manifest
	for i, num := range nums {
		m, damage, err := s.readManifest(num)
		if err != nil {
			return err
		}
		if i == 0 || !m.Broken {
			s.Damage = append(s.Damage, damage...)
		}
		if best == nil || best.Broken && !m.Broken {
			best = m
		}
		if !best.Broken || s.Current != "" && num == manifestNum(s.Current) && m.Edits > 0 {
			break // an older manifest would know less
		}
	}
	if best != nil && best.Edits > 0 {
		s.Manifest = best
		s.NextFile = max(s.NextFile, best.NextFile)
	}
	if best == nil {
		s.damaged("MANIFEST", -1, "there is no manifest")
	}
	return nil
}

func manifestNum(name string) uint64 {
	_, num := manifest.ParseFileName(name)
	return num
}

func (s *Store) readManifest(num uint64) (m *Manifest, damage []Damage, err error) {
	m = &Manifest{Num: num, Name: manifest.FileName(manifest.FileManifest, num),
		Live: map[uint64]manifest.AddedTable{}, Dead: map[uint64]bool{},
		Blobs: map[uint64]manifest.BlobFile{}, DeadBlobs: map[uint64]bool{}}
	var refused error
	fault, err := s.Examine(m.Name, func(f vfs.ReadFile) error {
		damage, refused = s.readEdits(m, wal.NewReader(f, s.path(m.Name), num))
		return nil
	})
	if err = cmp.Or(err, refused); err != nil {
		return nil, nil, err
	}
	if fault != nil {
		m.Broken = true
		return m, damageOf(m.Name, fault), nil
	}
	if m.StoreID == 0 {
		m.Broken = true
		damage = append(damage, Damage{File: m.Name, Offset: 0, What: "the description of the whole store is missing"})
	}
	return m, damage, nil
}

// readEdits takes in every edit that checks out, also past damage.
func (s *Store) readEdits(m *Manifest, r *wal.Reader) (damage []Damage, err error) {
	_, err = Records(r, func(offset int64, record []byte) error {
		err := m.apply(record, offset)
		if errors.Is(err, manifest.ErrNewerFormat) {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if err != nil {
			m.Broken = true
			damage = append(damage, Damage{File: m.Name, Offset: offset, What: err.Error()})
		}
		return nil
	}, func(err error) error {
		switch {
		case errors.Is(err, wal.ErrNewerFormat):
			return err
		case r.CrashExplains(err):
			if !s.o.frozen {
				s.note("%s ends in an edit that a crash cut off", m.Name)
			}
			return io.EOF
		}
		m.Broken = true
		damage = append(damage, damageOf(m.Name, err)...)
		return nil
	})
	m.Closed = r.Clean()
	return damage, err
}

// logHeader is the offset of the first record of a log.
const logHeader = 32

// apply takes an edit in.
func (m *Manifest) apply(record []byte, offset int64) error {
	e, err := manifest.DecodeEdit(record)
	if err != nil {
		return err
	}
	if m.Edits++; offset == logHeader {
		m.First = *e
		m.First.Added, m.First.Deleted, m.First.AddedBlobs, m.First.Slots = nil, nil, nil, manifest.Kept{}
		m.StoreID = e.StoreID
	}
	m.First.Features |= e.Features &^ manifest.FeatureSlots
	m.First.Merger = cmp.Or(e.Merger, m.First.Merger)
	m.NextFile, m.LogNum = max(m.NextFile, e.NextFile), max(m.LogNum, e.LogNum)
	m.Slots.Apply(&e.Slots)
	m.LastSeq, m.ClosedSeq = max(m.LastSeq, uint64(e.LastSeq)), uint64(e.Closed)
	for _, d := range e.Deleted {
		delete(m.Live, d.Num)
		m.Dead[d.Num] = true
	}
	for _, b := range e.AddedBlobs {
		m.Blobs[b.Num] = b
	}
	for _, num := range e.DeletedBlobs {
		delete(m.Blobs, num)
		m.DeadBlobs[num] = true
	}
	for _, a := range e.Added {
		m.Live[a.Table.Num] = a
		delete(m.Dead, a.Table.Num)
		m.LastSeq = max(m.LastSeq, uint64(a.Table.LargestSeq))
	}
	return nil
}

// Trusted reports whether there is a manifest with the lists of the store.
func (s *Store) Trusted() bool { return s.Manifest != nil && s.Manifest.Trusted }

// InTables reports whether a manifest says that all writes of a log are in tables.
func (s *Store) InTables(l *Log) bool { return s.Manifest != nil && l.Num < s.Manifest.LogNum }

// overlapsLive reports whether a table that the manifest lists may hold keys of t: one that t may have been made of.
// It must refer to a blob file, unless blob is 0.
func (s *Store) overlapsLive(t *Table, blob uint64) bool {
	d := t.Describe()
	for _, a := range s.Manifest.Live {
		refers := slices.ContainsFunc(a.Table.Blobs, func(r manifest.BlobRef) bool { return r.Num == blob })
		if (refers || blob == 0) && a.Table.Overlaps(d.Smallest, d.UpperBound()) {
			return true
		}
	}
	return false
}

// Rescues reports whether a table is worth having that a trusted manifest does not list. Then a crash came between a
// flush and its edit, and the logs with the writes are damaged, or gone.
func (s *Store) Rescues(t *Table) bool {
	if !s.Trusted() || t.Level >= 0 || t.Info == nil || len(t.Damage) > 0 ||
		uint64(t.Info.SmallestSeq) <= s.Manifest.LastSeq {
		return false
	}
	return len(s.Manifest.Missing) > 0 ||
		slices.ContainsFunc(s.LiveLogs(), func(l *Log) bool { return len(l.Damage) > 0 })
}

func (s *Store) logMissing(num uint64, detail string) {
	name := manifest.FileName(manifest.FileWAL, num)
	s.MissingLogs = append(s.MissingLogs, name)
	s.damaged(name, -1, "the log is missing%s", detail)
}

func (s *Store) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}
