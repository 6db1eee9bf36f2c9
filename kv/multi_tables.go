package kv

import (
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// A keyInFile is a key and where in a sorted run it is: the position of the file, then
// the number of the block.
type keyInFile struct {
	at  uint64
	key *multiKey
}

// tables looks in the tables for all open keys: in each sorted run as if it were one.
func (m *multiGet) tables() {
	for _, r := range m.s.version.Runs {
		m.here = m.here[:0]
		for _, k := range m.open {
			i, t := r.Find(k.key)
			if t == nil {
				t = r.Last()
			}
			m.consider(k, r.Level, i, t)
		}
		m.look(r.Level)
	}
}

// consider adds k to the keys to look for if t, the table in a position of its run, may
// have it as far as bounds and range tombstones tell.
func (m *multiGet) consider(k *multiKey, level, position int, t *version.Table) {
	if !t.Contains(k.key) {
		k.outOfBounds(level, t)
		return
	}
	if t.LargestSeq < k.cover {
		k.underTombstone(level, t)
		return
	}
	k.file, k.table = position, t
	if k.reader, k.err = t.Open(&m.d.tables); k.err != nil {
		m.failed = true
		return
	}
	m.here = append(m.here, k)
}

// look asks filters, indexes and blocks for the keys of m.here, each in one round.
func (m *multiGet) look(level int) {
	if m.failed {
		m.each(func(*multiKey) {})
		m.failed = false
	}
	admitted, remembered := m.here[:0], 0
	for _, k := range m.here {
		if k.filter = k.reader.AskFilter(k.key, k.hash); !k.filter.RulesOut() {
			admitted = append(admitted, k)
			continue
		}
		if k.filter == sstable.Remembered {
			remembered++
		}
		if k.sampled {
			k.tellCache(k.table, &sstable.Probe{Filter: k.filter})
		}
	}
	if remembered > 0 {
		m.stripe.Levels[level].Remembered.Add(uint64(remembered))
	}
	if negatives := len(m.here) - len(admitted) - remembered; negatives > 0 {
		m.stripe.Levels[level].Negatives.Add(uint64(negatives))
	}
	if m.here = admitted; len(admitted) == 0 {
		return
	}
	m.locate()
	if m.cached(); len(m.located) > 0 {
		m.blocks()
		m.read()
	}
	for _, k := range m.here {
		k.settle(level)
	}
	m.each(func(*multiKey) {})
}

// locate asks the indexes where the keys of m.here are.
func (m *multiGet) locate() {
	m.located = m.located[:0]
	m.leaves.keys = m.here
	for _, k := range m.here {
		if k.want == nil {
			m.lookups = append(m.lookups, sstable.Lookup{Key: k.key, Hash: k.hash, At: k.at})
			k.want = &m.lookups[len(m.lookups)-1]
		}
		m.leaves.next()
		if block, ok := k.reader.Locate(k.want, k.filter, m.leaves.wait); ok {
			m.located = append(m.located, keyInFile{uint64(k.file)<<32 | uint64(block), k})
		}
	}
	m.leaves.end()
}

// cached looks into those blocks of the located keys that are in memory, before reading
// others pushes them out, and leaves the other keys in m.located.
func (m *multiGet) cached() {
	inMemory := 0
	for _, l := range m.located { // all words are on their way before the first is waited for
		if l.key.reader.InMemory(l.key.want) {
			inMemory++
		}
	}
	if inMemory == 0 {
		return
	}
	left := m.located[:0]
	m.wants = m.wants[:0]
	for _, l := range m.located {
		if !l.key.reader.Pin(l.key.want) {
			left = append(left, l)
			continue
		}
		if m.wants = append(m.wants, l.key.want); len(m.wants) == sstable.MaxPinned {
			m.pinned()
		}
	}
	m.pinned()
	m.located = left
}

// pinned looks into the blocks that m.wants has pinned.
func (m *multiGet) pinned() {
	r := m.reader(0)
	r.buffer = sstable.FindPinned(r.buffer, m.wants)
	m.wants = m.wants[:0]
}

// blocks makes a list of the blocks of the located keys, in the order of the files.
func (m *multiGet) blocks() {
	slices.SortFunc(m.located, func(a, b keyInFile) int { return cmp.Compare(a.at, b.at) })
	m.wants, m.unread = m.wants[:0], m.unread[:0]
	for _, l := range m.located {
		m.wants = append(m.wants, l.key.want)
	}
	for from := 0; from < len(m.located); {
		l, to := m.located[from], from+1
		for to < len(m.located) && m.located[to].at == l.at {
			to++
		}
		m.unread = append(m.unread, blockWants{l.key.reader, m.wants[from:to:to]})
		from = to
	}
}

// settle makes what was found in a table of a level the key's answer, if it is one.
func (k *multiKey) settle(level int) {
	w := k.want
	if w.Err != nil {
		k.err = w.Err
		return
	}
	if k.sampled {
		k.tellCache(k.table, &w.Probe)
	}
	answered := false
	if w.Found {
		if answered = true; w.Trailer.Kind().Apart() {
			k.err = k.keepHandle(w.Value, w.Trailer)
		} else if answered = k.answer(w.Value, w.Trailer); !answered { // an operand
			answered, k.err = k.olderInTable(k.reader, w.Trailer, &w.Probe)
		}
	}
	if k.done = answered; k.err == nil {
		k.stripe.Levels[level].Count(&w.Probe, answered)
	}
}
