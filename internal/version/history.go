package version

import (
	"sync"
	"sync/atomic"
)

// A History knows the versions of a store that are in use, and so when a file's last one is gone. It counts no
// references to tables and blob files: a file is in all versions between the edit that added it and the one that
// deleted it. So each version has a list of the files that the next one in use omits. When a version goes, those that
// the one before it has too move to that one's list; the others are unused.
type History struct {
	mu      sync.Mutex // guards the links between versions
	newest  *Version
	numbers uint64 // versions that were installed

	obsolete atomic.Int64 // bytes of tables and blob files that the newest does not list, and that were not removed
}

// A life is what a History knows of a version.
type life struct {
	refs         atomic.Int64
	num          uint64
	older, newer *Version // in use; guarded by the History's mutex

	// Before the version is installed: the files that its edit brought and took away. Then
	// gone is the files that the next version in use has not.
	come, gone files
}

// files are some of those that versions list.
type files struct {
	tables []*Table
	blobs  []*Blob
}

// listed is what a History knows of a file.
type listed struct {
	since    uint64 // number of the first version that lists the file
	obsolete bool   // no current version lists it: it is removed with the last that does
}

func (l *listed) lists() *listed { return l }

// each calls f with what is known of each file.
func (fs *files) each(f func(l *listed)) {
	for _, t := range fs.tables {
		f(&t.listed)
	}
	for _, b := range fs.blobs {
		f(&b.listed)
	}
}

// size returns the bytes of the files.
func (fs *files) size() (bytes int64) {
	for _, t := range fs.tables {
		bytes += t.Size
	}
	for _, b := range fs.blobs {
		bytes += b.Size
	}
	return bytes
}

// handOn splits files that a version and earlier ones list: those that older, the version in use before it, has too;
// and those that are unused.
func handOn[F interface{ lists() *listed }](gone []F, older *Version) (kept, unused []F) {
	for _, f := range gone {
		if older != nil && f.lists().since <= older.num {
			kept = append(kept, f)
		} else {
			unused = append(unused, f)
		}
	}
	return kept, unused
}

// Install makes v, which Apply has made of the newest version, the newest. The caller has a
// reference of it. It takes O(changed).
func (h *History) Install(v *Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.numbers++
	v.num = h.numbers
	v.come.each(func(l *listed) { l.since = v.num })
	v.gone.each(func(l *listed) { l.obsolete = true })
	h.obsolete.Add(v.gone.size())
	if v.older = h.newest; v.older != nil {
		v.older.newer, v.older.gone = v, v.gone
	}
	v.come, v.gone = files{}, files{}
	h.newest = v
	v.refs.Add(1)
}

// Obsolete returns the bytes of files that the newest version does not list, and that were not removed: readers need
// them, or their turn will come. In a store that removes nothing it says nothing.
func (h *History) Obsolete() int64 { return h.obsolete.Load() }

// Ref takes a reference of a version that cannot lose its last one meanwhile.
func (l *life) Ref() { l.refs.Add(1) }

// Unref releases a reference, and reports whether it was the last. In a store Cleaner.Unref
// calls it, and takes the version then.
func (l *life) Unref() bool { return l.refs.Add(-1) == 0 }

// InUse reports whether the version has references.
func (l *life) InUse() bool { return l.refs.Load() > 0 }

// retire forgets a version without references, and returns the files that are unused now.
// One goroutine at a time calls it.
func (h *History) retire(v *Version) (unused files) {
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
	gone := v.gone
	if newest { // the store is closed
		gone = files{}
		v.All(func(_ int, t *Table) { gone.tables = append(gone.tables, t) })
		for b := range v.Blobs() {
			gone.blobs = append(gone.blobs, b.Blob)
		}
	}
	v.gone = files{}
	var kept files
	kept.tables, unused.tables = handOn(gone.tables, older)
	kept.blobs, unused.blobs = handOn(gone.blobs, older)
	if older != nil && !newest {
		older.gone.tables = append(older.gone.tables, kept.tables...)
		older.gone.blobs = append(older.gone.blobs, kept.blobs...)
	}
	return unused
}
