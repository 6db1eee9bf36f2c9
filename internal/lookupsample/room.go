package lookupsample

import (
	"slices"
	"time"
)

// makeRoom makes a quarter of the room free or more: of lookups and of the bytes of keys.
func (s *Sampler) makeRoom() {
	total := s.total()
	for {
		spaced := total-s.began >= leastSpacing*uint64(len(s.lookups))
		most := s.most.Load()
		if most/2 < s.floor && spaced || most < 1<<20 {
			s.dropOldest(total)
		} else {
			s.most.Store(most / 2)
			s.lowered(most / 2)
		}
		s.sift()
		if len(s.lookups) <= cap(s.lookups)/4*3 && s.keyBytes <= s.keyRoom/4*3 {
			return
		}
	}
}

// dropOldest drops the older half of the lookups and of the scans. What is left is taken to have begun half-way.
func (s *Sampler) dropOldest(total uint64) {
	s.lookups = s.lookups[:copy(s.lookups, s.lookups[(len(s.lookups)+1)/2:])]
	s.dropScans()
	s.began += (total - s.began) / 2
	s.since = s.since.Add(time.Since(s.since) / 2)
}

// dropScans drops the older half of the scans.
func (s *Sampler) dropScans() { s.keepScans(s.scans[(len(s.scans)+1)/2:]) }

// keepScans drops all scans except kept, which may alias s.scans.
func (s *Sampler) keepScans(kept []scan) {
	left := copy(s.scans, kept)
	clear(s.scans[left:])
	s.scans = s.scans[:left]
	s.scanBytes = 0
	for i := range s.scans {
		s.scanBytes += s.scans[i].bytes()
	}
}

// sift drops the lookups and scans of keys that are above the threshold, and the keys that no lookup has.
func (s *Sampler) sift() {
	most := s.most.Load()
	s.keepScans(slices.DeleteFunc(s.scans, func(o scan) bool { return o.hash > most }))
	clear(s.table)
	const unused, used = 0, 1
	state := make([]int32, len(s.entries)) // and then new numbers
	kept := s.lookups[:0]
	for _, word := range s.lookups {
		if s.entries[word>>1].hash <= most {
			state[word>>1] = used
			kept = append(kept, word)
		}
	}
	n := int32(0)
	for i := range s.entries {
		e := s.entries[i]
		if state[i] == unused {
			s.keyBytes -= len(e.key) + keyOverhead
			continue
		}
		state[i], s.entries[n] = n, e
		n++
	}
	clear(s.entries[n:])
	s.entries = s.entries[:n]
	for i := range s.entries {
		s.table[s.find(s.entries[i].hash)] = int32(i) + 1
	}
	for i, word := range kept {
		kept[i] = state[word>>1]<<1 | word&1
	}
	s.lookups = kept
}
