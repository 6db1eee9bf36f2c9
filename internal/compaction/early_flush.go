package compaction

import (
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
)

// A memtable is flushed before it is full if its log has many entries in an object store, or
// if its table would start a worthwhile compaction. Long stretches of tombstones and expired values make it
// worthwhile, as every scan over them passes all of them. So do entries that may hide large values, which take space
// until they meet. Such compactions are bounded as those for tables are.

// A Pending is what is known of the table that a flush of the active memtable would write.
type Pending struct {
	*version.Table
	tombs   []rangedel.Tombstone // that do not overlap
	garbage uint64               // bytes of records in blob files that a flush lets go of
	keys    *sstable.KeySample

	LogEntries int // of its log, in an object store
}

// PendingOf returns the table that a flush of m at now would write, if no snapshot needed older versions. It
// takes O(n), with n entries. The caller has a state with m.
func PendingOf(m *memtable.Memtable, now uint64) (p Pending) {
	count, garbage := sstable.NewCount(), uint64(0)
	it := m.NewIter()
	for ok := it.First(); ok; ok = it.Next() {
		k, value := it.Key(), it.Value()
		size, expired := uint64(0), false
		if k.Kind().Expires() {
			expiry, _, cut := base.CutExpiry(value)
			expired = cut && expiry <= now
		}
		if k.Kind().Separated() {
			if h, _, err := blob.HandleOf(k.Kind(), value); err == nil {
				size = uint64(h.Length)
			}
		}
		if expired {
			k, value = base.MakeKey(k.User, k.SeqNum(), base.KindDelete), nil
		}
		if covered := count.Add(k, value); covered || expired {
			garbage += size
		}
	}
	if m.HasTombstones() {
		p.tombs = rangedel.NewSet(m.Tombstones().AppendAll(nil)).Clip(nil, nil, nil)
	}
	p.Table, p.garbage = version.NewTable(tablemeta.Of(0, count.Info(), p.tombs)), garbage
	p.keys = count.Keys()
	p.RangeDeletes = uint64(len(p.tombs))
	return p
}

// NextExpiry returns the time from now until the next moment that is known at which values of the table have expired;
// 0 if no scan would notice.
func (p Pending) NextExpiry(now uint64) time.Duration {
	if p.Expiring < version.MinClustered {
		return 0
	}
	next := p.LastExpiry
	for _, moment := range p.ExpiryOctiles {
		if moment > now {
			next = min(next, moment)
		}
	}
	return version.UntilExpiry(func(wait time.Duration) bool { return next <= now+uint64(wait/time.Microsecond) })
}

// EstimateHidden notes how many bytes of blob values in older tables the entries hide, as lookups of a sample of
// the keys find it.
func (p Pending) EstimateHidden(hidden func(keys [][]byte) uint64) {
	p.Garbage.HiddenBytes = p.keys.Estimate(hidden)
}

// ManyAtRest is the number of entries of the log in an object store at which a memtable at rest is flushed. To open
// the store fetches them in two round trips, and the flush adds two requests to 100.
const ManyAtRest = 100

const reasonLongLog = "the log in the object store has many entries"

// EarlyFlush says why the active memtable, which p describes, must be flushed before it is full; "": it need not.
func (in *Input) EarlyFlush(p Pending) string {
	v := in.Version
	if p.Entries+p.RangeDeletes == 0 || v.NumRuns(0) >= in.L0SlowdownThreshold || in.Disk.Free < in.MemtableSize {
		return "" // there is nothing to flush, level 0 would only grow, or there is no room for it
	}
	if p.LogEntries >= ManyAtRest {
		return reasonLongLog
	}
	before := v.Levels[0].DenseDeletes
	merged := in.mergedWith(p)
	if p.DenseDeletes > 0 && !in.SeenBySnapshot(p.LargestSeq) && version.WorthMerging(before+p.DenseDeletes, merged) &&
		!version.WorthMerging(before, merged-p.Entries) {
		return ReasonTombstones
	}
	s := in.BlobSpace()
	allowed := s.MaxHidden
	if s.Live == 0 {
		allowed = float64(in.NewBlobSize(v))
	}
	hides := min(float64(p.Garbage.HiddenBytes+version.BlobBytesUnder(v.Runs, p.tombs)), s.Live) + float64(p.garbage)
	if !s.NeedsMerge() && s.Hidden+hides > allowed {
		return ReasonHidden
	}
	return ""
}

// mergedWith returns the number of entries that a compaction of level 0 would merge after a flush of p.
func (in *Input) mergedWith(p Pending) uint64 {
	v := in.Version
	if in.Style != Leveled {
		entries := p.Entries
		for n := range v.Levels {
			entries += v.Levels[n].Entries
		}
		return entries
	}
	baseLevel, _ := in.UsedLevels(v)
	s := version.SpanOf(append(slices.Clip(v.Level0()), p.Table))
	return p.Entries + v.Levels[0].Entries + version.EntriesOf(v.Levels[baseLevel].Overlapping(s.Lo, s.Hi))
}
