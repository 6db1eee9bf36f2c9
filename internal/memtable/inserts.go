package memtable

import "github.com/siftkv/siftkv/internal/base"

const maxInserts = 8 // see BenchmarkApply

// An inserts is points whose searches take turns, a node each. In a large table a search waits for a cache miss at
// almost every node: the misses of several searches are waited for together.
type inserts struct {
	n      int
	points [maxInserts]insert

	// ascending: the points are added in the order of their keys. A search begins where the last ones ended, at the
	// finger, and not at the head: it takes steps for the nodes in between, and not for the size of the table.
	ascending bool
	finger    [maxHeight]node // on each level a node before the next points; the last, unless others were added
	level     int             // that the last searches began on
	ends      [maxHeight]node // of the last search, which knew nothing of the points that are put with it
}

// An insert is a point on its way into the list.
type insert struct {
	k             base.InternalKey
	prefix, hash  uint64
	node          node
	height, level int  // level is that of the search; negative: the splice is known
	levels        int  // of the splice that the search fills in
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
	switch {
	case !together:
	case in.ascending:
		in.findAscending(m, points)
	default:
		m.findTogether(points)
	}
	for i := 0; i < len(points) && err == nil; i++ {
		switch {
		case !together:
			m.locate(&points[i])
		case in.ascending:
			in.advance(&points[i])
		}
		err = m.put(&points[i])
	}
	return err
}

// findTogether is find for each of points. The points before one may put its splice out of date: that is like a race.
func (m *Memtable) findTogether(points []insert) {
	m.loadLines(points)
	searching, top := 0, int(m.height.Load())-1
	for i := range points {
		p := &points[i]
		if p.height == 1 && m.findNewer(p) {
			p.level = -1
		} else if m.begin(p, head, nilNode, top) {
			searching++
		}
	}
	m.search(points, searching)
}

// findAscending is findTogether for ascending points, on as many levels as they need. It goes up from the finger to a
// level where the next node is not before any of them, and searches from there.
func (in *inserts) findAscending(m *Memtable, points []insert) {
	m.loadLines(points)
	if in.finger[0] == nilNode {
		for level := range in.finger {
			in.finger[level] = head
		}
	}
	level := max(in.level-1, 0)
	for i := range points {
		level = max(level, points[i].height-1)
	}
	known := nilNode
	for top := int(m.height.Load()) - 1; level < top; level++ {
		next := loadLink(m.arena, in.finger[level], linkAt(level))
		if next == nilNode || base.Compare(m.key(next), points[len(points)-1].k) >= 0 {
			known = next
			break
		}
	}
	in.level, in.ends = level, [maxHeight]node{}
	searching := 0
	for i := range points {
		p := &points[i]
		p.levels = level + 1
		if m.begin(p, in.finger[level], known, level) {
			searching++
		}
	}
	m.search(points, searching)
}

// advance moves the finger to p, which is put next. If its search ended at the node of the last one, points that were
// put since may come after that node: the finger is the last of them.
func (in *inserts) advance(p *insert) {
	for level := range in.level + 1 {
		if before := p.splice.before[level]; before != in.ends[level] {
			in.ends[level], in.finger[level] = before, before
		}
		if level < p.height {
			p.splice.before[level], in.finger[level] = in.finger[level], p.node
		}
	}
}

// loadLines loads the lines of the index.
func (m *Memtable) loadLines(points []insert) {
	for i := range points {
		l, _, _ := m.index.place(points[i].hash)
		l[0].Load()
	}
}

// search carries on the searches of points, as many as are under way, until all have ended.
func (m *Memtable) search(points []insert, searching int) {
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

// begin begins the search of p on a level, at a node before it. The node known is not before it. begin reports whether
// there is a node to compare.
func (m *Memtable) begin(p *insert, at, known node, level int) bool {
	p.at, p.known, p.level = at, known, level
	return m.goOn(p)
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
		if p.level < p.levels {
			p.splice.before[p.level], p.splice.after[p.level] = p.at, next
		}
	}
	return false
}
