package memtable

import "github.com/siftkv/siftkv/internal/base"

const maxInserts = 8 // see BenchmarkApply

// An inserts is points whose searches take turns, a node each. In a large table a search waits for a cache miss at
// almost every node: the misses of several searches are waited for together.
type inserts struct {
	n      int
	points [maxInserts]insert
}

// An insert is a point on its way into the list.
type insert struct {
	k             base.InternalKey
	prefix, hash  uint64
	node          node
	height, level int  // level is that of the search; negative: the splice is known
	at, next      node // the search is before k, and compares next
	known         node // is not before k
	splice        splice
}

// add is Add. The point is in the list after flush at the latest, and its key stays the caller's until then.
func (in *inserts) add(m *Memtable, k base.InternalKey, hash uint64, value []byte) error {
	if err := m.prepare(&in.points[in.n], k, hash, value); err != nil {
		return err
	}
	if in.n++; in.n == maxInserts {
		return in.flush(m)
	}
	return nil
}

// flush puts all points into the list.
func (in *inserts) flush(m *Memtable) (err error) {
	points := in.points[:in.n]
	in.n = 0
	together := len(points) > 1 && !m.findEnd(&points[0]) // points that ascend have nothing to search
	if together {
		m.findTogether(points)
	}
	for i := 0; i < len(points) && err == nil; i++ {
		if !together {
			m.locate(&points[i])
		}
		err = m.put(&points[i])
	}
	return err
}

// findTogether is find for each of points. The points before one may put its splice out of date: that is like a race.
func (m *Memtable) findTogether(points []insert) {
	for i := range points { // load the lines of the index
		l, _, _ := m.index.place(points[i].hash)
		l[0].Load()
	}
	searching := 0
	for i := range points {
		p := &points[i]
		p.at, p.known, p.level = head, nilNode, int(m.height.Load())-1
		if p.height == 1 && m.findNewer(p) {
			p.level = -1
		} else if m.goOn(p) {
			searching++
		}
	}
	for searching > 0 {
		for i := range points {
			p := &points[i]
			if p.level < 0 {
				continue
			}
			if at := loadPrefix(m.arena, p.next); at < p.prefix || at == p.prefix && m.lessTied(p.next, p.k) {
				p.at = p.next
			} else {
				p.known = p.next
			}
			if !m.goOn(p) {
				searching--
			}
		}
	}
}

// goOn brings a search to the next node to compare, and loads it into the cache. It reports whether there is one.
func (m *Memtable) goOn(p *insert) bool {
	for ; p.level >= 0; p.level-- {
		next := loadLink(m.arena, p.at, linkAt(p.level))
		if next != p.known && next != nilNode {
			p.next = next
			word(m.arena, next, keyField).Load()
			return true
		}
		if p.level < p.height {
			p.splice.before[p.level], p.splice.after[p.level] = p.at, next
		}
	}
	return false
}
