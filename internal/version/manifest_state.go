package version

import (
	"cmp"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A ManifestState is the state of a store after the edits of a manifest.
type ManifestState struct {
	StoreID  uint64
	Features manifest.Features
	Merger   string // name of the merger of the store's operands
	NextFile uint64
	LogNum   uint64
	lastSeq  base.SeqNum
	Closed   base.SeqNum // not 0: the store was closed, and has all writes up to here
	Edits    int
	Slots    manifest.Kept
	levels   [manifest.NumLevels]map[uint64]manifest.AddedTable // by number
	blobs    map[uint64]manifest.BlobFile                       // by number

	// Version compares no more than what edits have named since it made a version, or since the one
	// before that, because its caller may have dropped the last. Nil: nothing is known.
	from, made           *Version
	sinceFrom, sinceMade map[uint64]bool // numbers of tables and blob files
}

// NewManifestState returns the state of an empty manifest.
func NewManifestState() *ManifestState {
	s := &ManifestState{blobs: map[uint64]manifest.BlobFile{}}
	for n := range s.levels {
		s.levels[n] = map[uint64]manifest.AddedTable{}
	}
	return s
}

// Apply takes an edit in.
func (s *ManifestState) Apply(e *manifest.Edit) error {
	if e.StoreID != 0 {
		s.StoreID = e.StoreID
	}
	s.Edits, s.Closed = s.Edits+1, e.Closed
	s.Features |= e.Features
	s.Merger = cmp.Or(e.Merger, s.Merger)
	s.NextFile = max(s.NextFile, e.NextFile)
	s.LogNum, s.lastSeq = max(s.LogNum, e.LogNum), max(s.lastSeq, e.LastSeq)
	s.Slots.Apply(&e.Slots)
	s.note(e)
	for _, t := range e.Deleted {
		if _, ok := s.levels[t.Level][t.Num]; !ok {
			return fmt.Errorf("table %d is deleted from level %d but not there", t.Num, t.Level)
		}
		delete(s.levels[t.Level], t.Num)
	}
	for _, a := range e.Added {
		s.levels[a.Level][a.Table.Num] = a
	}
	for _, b := range e.AddedBlobs {
		if _, ok := s.blobs[b.Num]; ok {
			return fmt.Errorf("there are two files of number %d", b.Num)
		}
		s.blobs[b.Num] = b
	}
	for _, num := range e.DeletedBlobs {
		if _, ok := s.blobs[num]; !ok {
			return fmt.Errorf("blob file %d is deleted but not there", num)
		}
		delete(s.blobs, num)
	}
	return nil
}

// note keeps in mind which files an edit names.
func (s *ManifestState) note(e *manifest.Edit) {
	for _, since := range []map[uint64]bool{s.sinceFrom, s.sinceMade} {
		if since == nil {
			continue
		}
		for _, t := range e.Deleted {
			since[t.Num] = true
		}
		for i := range e.Added {
			since[e.Added[i].Table.Num] = true
		}
		for i := range e.AddedBlobs {
			since[e.AddedBlobs[i].Num] = true
		}
		for _, num := range e.DeletedBlobs {
			since[num] = true
		}
	}
}

// Version returns the version that the manifest describes. It shares with v the tables that v has, and is v if nothing
// else has changed. It may be older than v: a manifest that replaces a broken one lacks the edit that failed, which a
// follower may have seen. If v is the version that it returned last, or was given for that, it takes O(changed), and
// else O(tables).
func (s *ManifestState) Version(v *Version) (*Version, error) {
	switch {
	case s.made != nil && v == s.made:
		s.from, s.sinceFrom = v, s.sinceMade
	case s.from == nil || v != s.from:
		s.from, s.sinceFrom = v, s.named(v)
	}
	s.made, s.sinceMade = nil, nil
	e := &manifest.Edit{LastSeq: s.lastSeq}
	for num := range s.sinceFrom {
		if err := s.compare(e, num, v.files.get(num)); err != nil {
			return nil, err
		}
		s.compareBlob(e, num, v.blobs.get(num))
	}
	next := v
	changed := len(e.Added)+len(e.Deleted)+len(e.AddedBlobs)+len(e.DeletedBlobs) > 0
	if changed || max(s.lastSeq, v.LargestSeq) != v.LastSeq {
		var err error
		if next, err = v.Apply(e); err != nil {
			return nil, err
		}
		next.LastSeq = max(s.lastSeq, next.LargestSeq)
	}
	s.made, s.sinceMade = next, map[uint64]bool{}
	return next, nil
}

// named returns the numbers of all files of the state and of a version.
func (s *ManifestState) named(v *Version) map[uint64]bool {
	nums := map[uint64]bool{}
	v.All(func(_ int, t *Table) { nums[t.Num] = true })
	for b := range v.Blobs() {
		nums[b.Num] = true
	}
	for num := range s.blobs {
		nums[num] = true
	}
	for n := range s.levels {
		for num := range s.levels[n] {
			nums[num] = true
		}
	}
	return nums
}

// compareBlob is compare of a blob file, which never changes its place.
func (s *ManifestState) compareBlob(e *manifest.Edit, num uint64, was *LiveBlob) {
	b, ok := s.blobs[num]
	switch {
	case ok && was == nil:
		e.AddedBlobs = append(e.AddedBlobs, b)
	case !ok && was != nil:
		e.DeletedBlobs = append(e.DeletedBlobs, num)
	}
}

// compare adds to an edit of a version what brings a table from its place there, or from
// none, to its place in the state.
func (s *ManifestState) compare(e *manifest.Edit, num uint64, was *location) error {
	found := false
	for n := range s.levels {
		a, ok := s.levels[n][num]
		if !ok {
			continue
		}
		if found {
			return fmt.Errorf("table %d is in two levels", num)
		}
		found = true
		if was != nil && was.RunID == runOf(&a) {
			was = nil // it stays there
			continue
		}
		e.Added = append(e.Added, a)
	}
	if was != nil {
		e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: was.Level, Num: num})
	}
	return nil
}
