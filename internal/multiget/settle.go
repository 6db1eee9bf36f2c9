package multiget

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/values"
)

// settle makes what was found the keys' answers, and closes the keys that have one, or no table left. Older operands
// of a key are read by Answer, where these reads are requests for all keys side by side.
func (s *Search) settle() {
	if s.Tables.Far {
		s.here = s.here[:0]
		for _, k := range s.open {
			if k.hasOperand() {
				s.here = append(s.here, k)
			}
		}
		callback.Parallel(len(s.here), values.MaxRequests, func(i int) { s.settleKey(s.here[i]) })
	}
	open, runs := s.open[:0], len(s.Version.Runs)
	for _, k := range s.open {
		if k.probes != nil {
			s.settleKey(k)
		}
		if !k.Done && k.Err == nil && int(k.run) < runs {
			open = append(open, k)
		}
	}
	s.open = open
}

func (k *Key) hasOperand() bool {
	for p := k.probes; p != nil; p = p.next {
		if p.lookup.Found && p.lookup.Trailer.Kind() == base.KindMerge {
			return true
		}
	}
	return false
}

// settleKey takes what the probes of k have found, the newest first, until that answers the key. Other probes are only
// counted, and their errors ignored.
func (s *Search) settleKey(k *Key) {
	for p := k.probes; p != nil; p = p.next {
		l, open, answered := &p.lookup, !k.Done && k.Err == nil, false
		if l.Err != nil {
			if open {
				k.Err = l.Err
			}
			continue
		}
		if k.Sampled {
			s.tellCache(p.table, &l.Probe)
		}
		if open && l.Found {
			if answered, k.Err = s.Answer(k, p.reader, l); k.Err != nil {
				continue
			}
			k.Done = answered
		}
		s.Levels[p.level].Count(&l.Probe, answered)
	}
	k.probes, k.reads = nil, 0
}
