package advise

// A tally is what a replay counted.
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

// An access is a block that is read.
type access struct {
	block   int32
	kind    int8
	counted bool
}

// stream returns which blocks are read, in order, if filters err at these rates.
func (m *Model) stream(f *filters, remembered int, salt uint64) (all []access, t tally) {
	memory := newFacts(remembered)
	warm := m.warm
	for _, i := range m.order {
		if i < 0 {
			for _, b := range m.scans[-1-i] {
				if !b.present && unit(mix(b.draw^salt)) >= f.ranges[b.file] {
					continue
				}
				all = append(all, access{b.block, ofScan, warm <= 0})
			}
			continue
		}
		counted := int(i) >= m.warm
		if counted {
			warm = 0
		}
		number := m.trace.Lookups[i].Key
		kind := int8(ofAbsent)
		if m.trace.Keys[number].Found {
			kind = ofFound
		}
		for _, b := range m.keys[number] {
			if !b.present {
				if unit(mix(b.draw^salt)) >= f.rates[b.file] {
					continue
				}
				if memory.has(b.draw) {
					t.known++
					continue
				}
				t.wrong++
			}
			all = append(all, access{b.block, kind, counted})
			if b.again > 0 && b.present { // once marks the block as often as more times do
				all = append(all, access{b.block, kind, counted})
			}
		}
	}
	return all, t
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
