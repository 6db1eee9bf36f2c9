package compaction

import (
	"math"

	"github.com/siftkv/siftkv/internal/version"
)

// Blob files have live records, to which tables refer, and garbage. Both are counted exactly. But not every live
// record is needed: an entry may hide an older one below it, whose value becomes garbage when the two are merged. How
// much that is was estimated when the tables above were written. So what is needed is what is live without what is
// hidden. Blob files keep to Options.BlobSpace times that, or to less where the disk has no more room.
//
// Two things make space. Merging tables down shows what was hidden, for the price of tables, which is small. With r
// bytes of tables for a byte of values, it writes r/h for each byte written if a share h may be hidden. Blob GC copies
// what is live in files with much garbage, and costs more the more is hidden. The sum of both costs is smallest at
// about h = sqrt(r/3), for BlobSpace of 1.3 to 1.5. A batch of blob GC has tables rewritten too, r/b for a batch that
// frees a share b, and lets the space vary by b: sqrt(r/2) is about right there.

// A BlobSpace says what the blob files of a version take. All are bytes of records.
type BlobSpace struct {
	Live    float64 // to which tables refer
	Garbage float64 // to which no table refers, in files that can be collected
	Hidden  float64 // about how much of Live is garbage once tables are merged
	Dead    float64 // how much of Live is garbage once single tables are rewritten
	Needed  float64 // Live without Hidden and Dead

	Allowed   float64 // the limit of Garbage, Hidden and Dead together
	MaxHidden float64 // with more of Hidden, tables are merged
	Batch     float64 // what a batch of blob GC frees in addition to what is over the limit
}

// minBlobGarbage is how many blob files' worth of garbage a store may have, however small it is: less is not worth a
// batch.
const minBlobGarbage = 2

// garbageOfTables is the garbage that a store may have for its tables, one part in garbageOfTables of their bytes. To
// free garbage, tables are rewritten, and most of a store may be small values.
const garbageOfTables = 10

// BlobSpace returns what the blob files of the version take. It takes O(runs).
func (in *Input) BlobSpace() (s BlobSpace) {
	v := in.Version
	totals := v.BlobTotals()
	if totals.Files == 0 {
		return s
	}
	s.Live = float64(totals.LiveBytes)
	s.Garbage = float64(totals.RecordBytes) - s.Live
	for num := range in.State.StuckBlobs(v) {
		if b := v.Blob(num); b != nil {
			s.Garbage -= float64(b.Garbage())
		}
	}
	tables, above := 0.0, 0.0
	for i, r := range v.Runs {
		tables += float64(r.Totals().Bytes)
		if i < len(v.Runs)-1 {
			above += float64(r.Totals().HiddenBytes)
		}
	}
	s.Hidden = min(above+float64(v.HiddenByRanges()), s.Live)
	s.Dead = min(float64(v.DroppableBlobBytes(in.Now, in.OldestSnapshot)), s.Live-s.Hidden)
	s.Needed = s.Live - s.Hidden - s.Dead
	in.setLimits(&s, tables)
	return s
}

// setLimits sets the limits of what the blob files take, in a store with a size of all tables.
func (in *Input) setLimits(s *BlobSpace, tables float64) {
	file := float64(in.NewBlobSize(in.Version))
	s.Allowed = max((in.BlobSpaceLimit-1)*s.Needed, minBlobGarbage*file, tables/garbageOfTables)
	if free := in.Disk.WithObsolete; free < math.MaxInt64 { // more is wanted for other things
		room := s.Garbage + s.Hidden + s.Dead + float64(free-in.SpaceWanted(in.Version))
		s.Allowed = min(s.Allowed, max(room, s.Needed/8, file/8))
	}
	share := tables / max(s.Live, 1)
	s.MaxHidden = min(max(math.Sqrt(share/3)*s.Needed, min(float64(in.MemtableSize), s.Allowed/2)), s.Allowed/2)
	s.Batch = min(max(math.Sqrt(share/2)*s.Needed, 0.02*s.Needed, s.Allowed/8), s.Allowed/3)
}

// Over returns by how much the blob files are over the limit.
func (s *BlobSpace) Over() float64 { return s.Garbage + s.Hidden + s.Dead - s.Allowed }

// Pressure returns how much writers must be slowed down for blob files, with a number of bytes in memory that will
// come: not at all at 0; at 1 and more they wait. The files may exceed their limit by a batch of blob GC or by two
// memtables, whichever is more. Writers are slowed down beyond half of that.
func (s *BlobSpace) Pressure(pending, memtable float64) float64 {
	room := max(s.Batch, 2*memtable)
	return max(s.Over()+pending-room/2, 0) / (room / 2)
}

// NeedsMerge reports whether tables must be merged to show what is hidden.
func (s *BlobSpace) NeedsMerge() bool { return s.Hidden > s.MaxHidden }

// needsRewrite reports whether tables must be rewritten for what has expired or is overwritten in them.
func (s *BlobSpace) needsRewrite() bool { return s.Dead > s.MaxHidden }

// NeedsGC reports whether blob files must be collected. They need not if most of what is over the limit is hidden:
// blob GC does not change that.
func (s *BlobSpace) NeedsGC() bool { return s.Over() > 0 && s.Garbage > s.Allowed/2 }

// hiddenBy returns about how many bytes the entries of a level hide.
func (s *BlobSpace) hiddenBy(l *version.Level) float64 {
	hides := float64(l.HiddenBytes)
	if l.RangeDeletes > 0 {
		hides = max(hides, s.Hidden)
	}
	return hides
}

// hidingLevel returns the level that hides most, of those above the oldest run's.
func (s *BlobSpace) hidingLevel(v *version.Version) (level int) {
	largest := -1.0
	for n := range v.Runs[len(v.Runs)-1].Level {
		if h := s.hiddenBy(&v.Levels[n]); h > largest {
			level, largest = n, h
		}
	}
	return level
}

// hidingScore says how badly a level must go down because it hides values below. Only the level that hides most has a
// score, if it has tables: all that hides may be in the oldest run's level, of a store that was tiered.
func (s *BlobSpace) hidingScore(v *version.Version, level int) float64 {
	if !s.NeedsMerge() || s.hidingLevel(v) != level || v.Levels[level].Len() == 0 {
		return 0
	}
	return s.Hidden / s.MaxHidden
}

// Sizes of a blob file at which the next one begins. A store has about fewBlobs files, of which the emptiest can be
// collected, and a large one at most manyBlobs.
const (
	minBlobSize = 4 << 20
	maxBlobSize = 64 << 20 // of a store with fewer than manyBlobs files
	fewBlobs    = 64
	manyBlobs   = 2048
)

// NewBlobSize returns the size of new blob files, in bytes.
func (o *Options) NewBlobSize(v *version.Version) int64 {
	if o.BlobFileSize > 0 {
		return o.BlobFileSize
	}
	live := int64(v.BlobTotals().LiveBytes)
	return max(min(max(live/fewBlobs, minBlobSize), maxBlobSize), live/manyBlobs)
}

// SpaceWanted returns how many bytes of the disk should be free. They are for a step of blob GC, with the tables that
// it rewrites and two blob files. They are for the active log, the next one, and the flush of the active memtable, now
// or when the store is opened again. And they are for two memtables more, at which writers wait.
func (o *Options) SpaceWanted(v *version.Version) int64 {
	return min(tableBytes(v), o.MaxGCTables(v)) + 2*o.NewBlobSize(v) + 5*o.MemtableSize
}

// shortOfSpace reports whether blob GC rewrites one table at a time, for want of space.
func (in *Input) shortOfSpace() bool { return in.Disk.Free < in.SpaceWanted(in.Version)/2 }
