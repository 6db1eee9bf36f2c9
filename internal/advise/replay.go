package advise

type tally struct {
	reads [numKinds]float64 // blocks that the cache did not have, by kind
	bytes [numKinds]float64 // of them, as stored
	wrong float64           // blocks that were read because a filter erred, counted or not
	known float64           // and those that were not, as that was remembered
}

// Kinds of what reads a block.
const (
	ofFound = iota
	ofAbsent
	ofScan
	numKinds
)

type access struct {
	block   int32
	kind    int8
	counted bool
}

// stream returns which blocks are read, in order, if filters err at these rates.
func (m *Model) stream(f *filters, remembered int, salt uint64) ([]access, tally) {
	s := streaming{m: m, f: f, memory: newFacts(remembered), salt: salt}
	counted := m.warm <= 0
	for _, i := range m.order {
		if i < 0 {
			s.scan(m.scans[-1-i], counted)
			continue
		}
		counted = int(i) >= m.warm
		s.lookup(m.trace.Lookups[i].Key, counted)
	}
	return s.all, s.t
}

type streaming struct {
	m      *Model
	f      *filters
	memory *facts
	salt   uint64
	all    []access
	t      tally
}

func (s *streaming) scan(blocks scanTouches, counted bool) {
	for _, b := range blocks {
		if b.present || unit(mix(b.draw^s.salt)) < s.f.ranges[b.file] {
			s.all = append(s.all, access{b.block, ofScan, counted})
		}
	}
}

// lookup adds the blocks of a lookup of a key.
func (s *streaming) lookup(key int32, counted bool) {
	kind := int8(ofAbsent)
	if s.m.trace.Keys[key].Found {
		kind = ofFound
	}
	for _, b := range s.m.keys[key] {
		if !b.present && !s.errs(b) {
			continue
		}
		s.all = append(s.all, access{b.block, kind, counted})
		if b.again > 0 && b.present { // once more marks the block, and many times do no more
			s.all = append(s.all, access{b.block, kind, counted})
		}
	}
}

// errs reports whether a block is read in vain, and counts that. Of a file without a filter nothing is
// remembered.
func (s *streaming) errs(b touch) bool {
	rate := s.f.rates[b.file]
	switch {
	case unit(mix(b.draw^s.salt)) >= rate:
		return false
	case rate < 1 && s.memory.has(b.draw):
		s.t.known++
		return false
	}
	s.t.wrong++
	return true
}

// replay returns what a cache would not have had of a stream of accesses.
func (m *Model) replay(all []access, cache int64, t *tally) {
	c := newClock(cache, m.sizes, m.share)
	for _, a := range all {
		if hit := c.read(a.block); !hit && a.counted {
			t.reads[a.kind]++
			t.bytes[a.kind] += m.stored[a.block]
		}
	}
}

// facts are the keys and files that a store remembers as false positives, up to a number; the
// oldest are forgotten.
type facts struct {
	at    map[uint64]bool
	queue []uint64
	next  int
}

func newFacts(most int) *facts { return &facts{map[uint64]bool{}, make([]uint64, most), 0} }

// has reports whether a fact is there, and then it is.
func (f *facts) has(fact uint64) bool {
	if len(f.queue) == 0 {
		return false
	}
	if f.at[fact] {
		return true
	}
	delete(f.at, f.queue[f.next])
	f.queue[f.next] = fact
	f.next = (f.next + 1) % len(f.queue)
	f.at[fact] = true
	return false
}
