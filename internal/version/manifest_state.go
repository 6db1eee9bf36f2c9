package version

import (
	"cmp"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A ManifestState is what the edits of a manifest come to, one after the other.
type ManifestState struct {
	StoreID  uint64
	Features manifest.Features
	Merger   string // name of the merger of the store's operands
	NextFile uint64
	LogNum   uint64
	lastSeq  base.SeqNum
	Closed   base.SeqNum // not 0: the store was closed, and has all writes up to here
	Edits    int
	levels   [manifest.NumLevels]map[uint64]manifest.AddedTable // by number
}

// NewManifestState returns the state of an empty manifest.
func NewManifestState() *ManifestState {
	s := &ManifestState{}
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
	for _, t := range e.Deleted {
		if _, ok := s.levels[t.Level][t.Num]; !ok {
			return fmt.Errorf("table %d is deleted from level %d but not there", t.Num, t.Level)
		}
		delete(s.levels[t.Level], t.Num)
	}
	for _, a := range e.Added {
		s.levels[a.Level][a.Table.Num] = a
	}
	return nil
}

// Version returns the version that the manifest describes. It shares with v the
// tables that v has, and is v if nothing else has changed. It may be older than v: a
// manifest that replaces a broken one lacks the edit that failed, which a follower may
// have seen.
func (s *ManifestState) Version(v *Version) (*Version, error) {
	e := &manifest.Edit{LastSeq: s.lastSeq}
	seen := map[uint64]bool{}
	for n := range s.levels {
		had := map[uint64]bool{}
		v.Levels[n].each(func(t *Table, run uint64) {
			a, ok := s.levels[n][t.Num]
			had[t.Num] = ok && a.Run == run
			if !had[t.Num] {
				e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: n, Num: t.Num})
			}
		})
		for num, a := range s.levels[n] {
			if seen[num] {
				return nil, fmt.Errorf("table %d is in two levels", num)
			}
			seen[num] = true
			if !had[num] {
				e.Added = append(e.Added, a)
			}
		}
	}
	if len(e.Added)+len(e.Deleted) == 0 && max(s.lastSeq, v.LargestSeq) == v.LastSeq {
		return v, nil
	}
	next, err := v.Apply(e)
	if err == nil {
		next.LastSeq = max(s.lastSeq, next.LargestSeq)
	}
	return next, err
}
