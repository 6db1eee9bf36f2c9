package version

import (
	"sync"
	"sync/atomic"
)

// A History knows the versions of a store that are in use, and so when a table's last one is
// gone. It counts no references of tables: a table is in all versions between the edit that
// brought it and the one that took it away. So each version keeps a list of the tables that
// the next one in use has not, and when it goes, those that the one before it has move into
// that one's list, and the others are needed by nobody.
type History struct {
	mu      sync.Mutex // guards the links between versions
	newest  *Version
	numbers uint64 // versions that were installed
}

// A life is what a History knows of a version.
type life struct {
	refs         atomic.Int64
	num          uint64
	older, newer *Version // in use; guarded by the History's mutex

	// Before the version is installed: the tables that its edit brought and took away. Then
	// gone is the tables that the next version in use has not.
	come, gone []*Table
}

// Install makes v, which Apply has made of the newest version, the newest. The caller has a
// reference of it. It takes O(changed).
func (h *History) Install(v *Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.numbers++
	v.num = h.numbers
	for _, t := range v.come {
		t.since = v.num
	}
	for _, t := range v.gone {
		t.obsolete = true
	}
	if v.older = h.newest; v.older != nil {
		v.older.newer, v.older.gone = v, v.gone
	}
	v.come, v.gone = nil, nil
	h.newest = v
	v.refs.Add(1)
}

// Come returns the tables of a version that the one before it has not, until Install is
// called for it: who gives it up sees to what became of these meanwhile.
func (l *life) Come() []*Table { return l.come }

// Ref takes a reference of a version that cannot lose its last one meanwhile.
func (l *life) Ref() { l.refs.Add(1) }

// Unref gives a reference up, and reports whether it was the last: then the version is
// handed to the store's Cleaner.
func (l *life) Unref() bool { return l.refs.Add(-1) == 0 }

// InUse reports whether anybody refers to the version.
func (l *life) InUse() bool { return l.refs.Load() > 0 }

// retire forgets a version without references, and returns the tables that nobody needs any
// more. One goroutine at a time calls it.
func (h *History) retire(v *Version) (unused []*Table) {
	h.mu.Lock()
	older, newest := v.older, v.newer == nil
	if newest {
		h.newest = older
	} else {
		v.newer.older = older
	}
	if older != nil {
		older.newer = v.newer
	}
	v.older, v.newer = nil, nil
	h.mu.Unlock()
	if newest { // the store is closed
		v.All(func(_ int, t *Table) {
			if older == nil || t.since > older.num {
				unused = append(unused, t)
			}
		})
		return unused
	}
	for _, t := range v.gone {
		if older != nil && t.since <= older.num {
			older.gone = append(older.gone, t)
		} else {
			unused = append(unused, t)
		}
	}
	v.gone = nil
	return unused
}
