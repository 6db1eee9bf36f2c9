package kv

import (
	"cmp"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// A manifestState is what the edits of a manifest come to, one after the other.
type manifestState struct {
	storeID  uint64
	features manifest.Features
	merger   string // name of the merger of the store's operands
	nextFile uint64
	logNum   uint64
	lastSeq  base.SeqNum
	closed   base.SeqNum // not 0: the store was closed, and has all writes up to here
	edits    int
	levels   [manifest.NumLevels]map[uint64]manifest.AddedTable // by number
}

func newManifestState() *manifestState {
	s := &manifestState{}
	for n := range s.levels {
		s.levels[n] = map[uint64]manifest.AddedTable{}
	}
	return s
}

// apply takes an edit in.
func (s *manifestState) apply(e *manifest.Edit) error {
	if e.StoreID != 0 {
		s.storeID = e.StoreID
	}
	s.edits, s.closed = s.edits+1, e.Closed
	s.features |= e.Features
	s.merger = cmp.Or(e.Merger, s.merger)
	s.nextFile = max(s.nextFile, e.NextFile)
	s.logNum, s.lastSeq = max(s.logNum, e.LogNum), max(s.lastSeq, e.LastSeq)
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

// version returns the version that the manifest describes. It shares with v the
// tables that v has, and is v if nothing else has changed. It may be older than v: a
// manifest that replaces a broken one does not have the edit that failed, which who reads
// beside the writer may have seen.
func (s *manifestState) version(v *version) (*version, error) {
	e := &manifest.Edit{LastSeq: s.lastSeq}
	seen := map[uint64]bool{}
	for n := range s.levels {
		had := map[uint64]bool{}
		v.levels[n].each(func(t *table, run uint64) {
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
	if len(e.Added)+len(e.Deleted) == 0 && max(s.lastSeq, v.largestSeq) == v.lastSeq {
		return v, nil
	}
	next, err := v.apply(e)
	if err == nil {
		next.lastSeq = max(s.lastSeq, next.largestSeq)
	}
	return next, err
}
