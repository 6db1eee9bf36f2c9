package compaction

import (
	"slices"

	"github.com/siftkv/siftkv/internal/version"
)

// State is what decisions depend on in addition to a version: what runs, and what earlier decisions have begun. The
// caller's lock guards it.
type State struct {
	Reserved    []*Reservation   // where compactions and ingests write
	Wanted      []*version.Span  // ranges of callers that wait for running compactions
	Quarantined []*version.Table // and perhaps some that were
	GC          BlobGC
	weighed     [NumLevels][]byte // by level: tables before this key were weighed last
}

// A Reservation keeps other compactions and ingests from writing tables into a span of a level.
type Reservation struct {
	level int
	span  version.Span
}

// Reserve reserves a span of a level until Release.
func (s *State) Reserve(level int, keys version.Span) *Reservation {
	r := &Reservation{level, keys}
	s.Reserved = append(s.Reserved, r)
	return r
}

// Release ends a reservation.
func (s *State) Release(r *Reservation) {
	i := slices.Index(s.Reserved, r)
	s.Reserved = slices.Delete(s.Reserved, i, i+1)
}

// IsReserved reports whether something may write keys of a span of a level.
func (s *State) IsReserved(level int, keys version.Span) bool {
	return slices.ContainsFunc(s.Reserved, func(r *Reservation) bool {
		return r.level == level && r.span.Overlaps(keys)
	})
}
