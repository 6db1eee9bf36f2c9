package kv

import (
	"math"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/version"
)

// Blob files take what tables refer to, which is exact, and garbage, to which none refers any more. But
// not all that is referred to is needed: an entry above may hide one below, and its value is garbage
// once the two meet. How much that is was estimated when the tables above were written (see hidden.go). So what is
// needed is what is live without what is hidden, and blob files keep to Options.BlobSpace times that, or to less where
// the disk has no more room.
//
// Two things make space. Merging tables down shows what was hidden, for the price of tables,
// which is small: with r bytes of tables for a byte of values, r/h for each byte written if a share
// h may be hidden. Collection copies what is live in files with much garbage, and costs more the
// more is hidden. The sum of both costs is least about where h = sqrt(r/3), at the spaces 1.3 to 1.5.
// A batch of files has tables rewritten too, r/b for a batch that frees a share b, and lets the space
// vary by b: sqrt(r/2) is about right there.

// A blobSpace says what the blob files of a version take. All are bytes of records.
type blobSpace struct {
	live    float64 // that tables refer to
	garbage float64 // that none refers to, in files that can be collected
	hidden  float64 // of live, about what is garbage when tables are merged
	dead    float64 // of live, what is garbage when single tables are rewritten
	needed  float64 // live without hidden and dead

	allowed    float64 // of garbage and hidden together: the limit
	mostHidden float64 // from where on tables are merged
	batch      float64 // that a collection frees beyond what is over the limit
}

// leastWaste is how many blob files' worth of garbage a store may have, however small it is: less is not worth a
// batch.
const leastWaste = 2

// tablesPart is the part of the bytes of tables that garbage may take, however little the tables refer to: to free it
// tables are rewritten, and most of a store may be small values.
const tablesPart = 10

// blobSpace returns what the blob files of a version take, in O(runs). The caller holds d.mu.
func (d *DB) blobSpace(v *version.Version) (s blobSpace) {
	totals := v.BlobTotals()
	if totals.Files == 0 {
		return s
	}
	s.live = float64(totals.LiveBytes)
	s.garbage = float64(totals.RecordBytes) - s.live
	for num := range d.stuckBlobs(v) {
		if b := v.Blob(num); b != nil {
			s.garbage -= float64(b.Garbage())
		}
	}
	tables, above := 0.0, 0.0
	for i, r := range v.Runs {
		tables += float64(r.Sums().Bytes)
		if i < len(v.Runs)-1 {
			above += float64(r.Sums().Hides)
		}
	}
	s.hidden = min(above+float64(v.RangesHide()), s.live)
	s.dead = min(float64(v.DeadApart(d.told.time(), d.oldestSeen())), s.live-s.hidden)
	s.needed = s.live - s.hidden - s.dead

	memtable := float64(d.opts.MemtableSize)
	share := tables / max(s.live, 1)
	s.allowed = max((d.opts.BlobSpace-1)*s.needed, leastWaste*float64(d.blobSizeFor(v)), tables/tablesPart)
	if free := d.space.withObsolete(&d.history); free < math.MaxInt64 { // more is wanted for other things
		room := s.garbage + s.hidden + s.dead + float64(free-d.spaceWanted(v))
		s.allowed = min(s.allowed, max(room, s.needed/8, float64(d.blobSizeFor(v))/8))
	}
	s.mostHidden = min(max(math.Sqrt(share/3)*s.needed, min(memtable, s.allowed/2)), s.allowed/2)
	s.batch = min(max(math.Sqrt(share/2)*s.needed, 0.02*s.needed, s.allowed/8), s.allowed/3)
	return s
}

// oldestSeen returns the sequence number of the oldest snapshot: overwritten versions up to there are for nobody where
// nothing is newer. The caller holds d.mu.
func (d *DB) oldestSeen() base.SeqNum {
	if oldest, held := d.snapshots.oldest(); held {
		return oldest
	}
	return base.MaxSeqNum
}

// over returns by how much the blob files are over the limit.
func (s *blobSpace) over() float64 { return s.garbage + s.hidden + s.dead - s.allowed }

// hides reports whether tables should be merged to show what is hidden.
func (s *blobSpace) hides() bool { return s.hidden > s.mostHidden }

// collects reports whether files should be collected. If most of what is over the limit is hidden, which no
// collection changes, they should not.
func (s *blobSpace) collects() bool { return s.over() > 0 && s.garbage > s.allowed/2 }

// hiding returns about how many bytes entries of a level hide.
func (s *blobSpace) hiding(l *version.Level) float64 {
	hides := float64(l.Hides)
	if l.RangeDeletes > 0 {
		hides = max(hides, s.hidden)
	}
	return hides
}

// hidingLevel returns the level above the oldest run's that hides most.
func (s *blobSpace) hidingLevel(v *version.Version) (level int) {
	most := -1.0
	for n := range v.Runs[len(v.Runs)-1].Level {
		if h := s.hiding(&v.Levels[n]); h > most {
			level, most = n, h
		}
	}
	return level
}

// stuckBlobs returns the blob files that cannot be collected: those that could not be read, and those that damaged
// tables refer to. The caller holds d.mu.
func (d *DB) stuckBlobs(v *version.Version) map[uint64]bool {
	var stuck map[uint64]bool
	add := func(num uint64) {
		if stuck == nil {
			stuck = map[uint64]bool{}
		}
		stuck[num] = true
	}
	for num := range d.compactions.collection.aside {
		add(num)
	}
	for _, t := range d.compactions.quarantined {
		if t.Quarantined && v.Has(t.Num) {
			for _, r := range t.Blobs {
				add(r.Num)
			}
		}
	}
	return stuck
}

// countStuckBlobs returns the number of stuckBlobs.
func (d *DB) countStuckBlobs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.stuckBlobs(d.current))
}

// recountBlobs counts anew what tables refer to. It takes a walk over all tables.
func (d *DB) recountBlobs() error {
	n := ownStripe()
	s := d.acquire(n)
	if s == nil {
		return d.unreadable()
	}
	defer d.release(s, n)
	return s.version.RecountBlobs()
}
