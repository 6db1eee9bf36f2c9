package repair

import (
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
)

// A lostTable is entries of a table that are lost, of which some may have had their values in blob files.
type lostTable struct {
	name   string
	level  int // -1: not decided
	run    uint64
	ranges []Range // of their keys
	// Entries have sequence numbers from first to last. If first is 0, those of their writes may be any.
	first, last base.SeqNum
	refs        map[uint64]uint64 // how many records of which blob files they refer to; nil: any
	uncounted   bool              // the numbers in refs mean nothing
	single      bool              // it has one version of each key
	rest        *piece            // what is left of the table; nil: nothing
	loss        int               // index in the report's list; -1: there is none

	near   *neighbours
	sure   rebuiltEntries
	unsure rebuiltEntries // that count only if there is no garbage
	taken  uint64         // values that were rebuilt
	left   uint64         // values that it may have had and that were not
}

// covers reports whether a lost entry may have a key.
func (t *lostTable) covers(key []byte) bool {
	return slices.ContainsFunc(t.ranges, func(r Range) bool { return r.Contains(key) })
}

// may reports whether the table may have had a handle of a record.
func (t *lostTable) may(key []byte, rec *foundRecord) bool {
	switch {
	case t.refs != nil && t.refs[rec.file.num] == 0 || !t.covers(key):
		return false
	case t.first == 0 || rec.seq >= t.first && rec.seq <= t.last:
		return true
	}
	// A value from a stream was numbered when it was read, which may have been long before its entry was written. The
	// table had it if it referred to all that is in the file.
	return rec.seq < t.first && t.refs != nil && !t.uncounted && t.refs[rec.file.num] == rec.file.records()
}

// seqOf returns the sequence number of the table's entry with a handle of a record.
func (t *lostTable) seqOf(rec *foundRecord) base.SeqNum { return max(rec.seq, t.first) }

// loseSeparated notes a table that is lost, or partly so, if it had, or may have had, separated values. If the report
// has a loss of it, that is the last one; rest is what was salvaged.
func (r *repairer) loseSeparated(t *survey.Table, sv *sstable.Salvage, rest *piece) {
	r.tablesLost++
	lt := &lostTable{name: t.Name, level: t.Level, run: t.Run, rest: rest, loss: -1}
	if n := len(r.report.Lost); n > 0 && r.report.Lost[n-1].File == t.Name {
		lt.loss = n - 1
		lt.ranges = slices.Clone(r.report.Lost[n-1].Ranges)
	}
	switch {
	case t.Listing != nil:
		lt.first, lt.last = t.Listing.SmallestSeq, t.Listing.LargestSeq
		lt.single = t.Listing.Overwritten == 0
		lt.expect(t.Listing.Blobs)
	case sv != nil && sv.Properties != nil:
		lt.first, lt.last = sv.Properties.SmallestSeq, sv.Properties.LargestSeq
		lt.expect(blobsOf(sv.Properties))
	case t.Info != nil:
		lt.first, lt.last = t.Info.SmallestSeq, t.Info.LargestSeq
		lt.expect(blobsOf(&t.Info.Properties))
	default:
		lt.uncounted = true
	}
	if lt.refs != nil && rest != nil {
		for _, ref := range rest.t.Blobs {
			lt.refs[ref.Num] -= min(ref.Records, lt.refs[ref.Num])
		}
	}
	if lt.ranges == nil {
		lt.ranges = []Range{{}}
	}
	if lt.loss < 0 || lt.refs != nil && lt.referred() == 0 {
		return
	}
	if lt.refs == nil { // only its keys tell which records it had
		lt.ranges = slices.DeleteFunc(lt.ranges, func(g Range) bool { return g.Lower == nil || g.Upper == nil })
	}
	if !r.s.Trusted() && !t.Present && r.replaced(t) {
		if r.replacedIn == nil {
			r.replacedIn = map[uint64]bool{}
		}
		for num := range lt.refs {
			r.replacedIn[num] = true
		}
		return
	}
	r.lostTables = append(r.lostTables, lt)
}

func (t *lostTable) expect(refs []blobRef) {
	t.refs = map[uint64]uint64{}
	for _, ref := range refs {
		t.refs[ref.Num] = ref.Records
	}
}

// referred returns how many records the lost entries referred to.
func (t *lostTable) referred() (sum uint64) {
	for _, n := range t.refs {
		sum += n
	}
	return sum
}

func blobsOf(p *sstable.Properties) (refs []blobRef) {
	for _, b := range p.Blobs {
		refs = append(refs, blobRef{Num: b.Num, Records: b.Records, Bytes: b.Bytes})
	}
	return refs
}

// replaced reports whether a table that is not there may have been compacted, and the manifest has lost the edit: there
// are tables that it does not list, with keys of the table's range.
func (r *repairer) replaced(t *survey.Table) bool {
	return slices.ContainsFunc(r.s.Tables, func(o survey.Table) bool {
		if !o.Present || o.Listing != nil || o.Holds != "" {
			return false
		}
		if o.Info == nil {
			return true // it may have been any
		}
		d := o.Describe()
		return overlap(&d, t.Listing)
	})
}

// loseUnlisted takes unreferenced blob files for those of lost tables, if there is no trusted manifest: a store removes
// a blob file when its last reference goes.
func (r *repairer) loseUnlisted() {
	if r.s.Trusted() {
		return
	}
	kept := r.referred()
	for i := range r.s.Blobs {
		f := &r.s.Blobs[i]
		m := r.s.Manifest
		if !f.Present || f.ID == 0 || kept[f.Num] || r.replacedIn[f.Num] || m != nil && m.DeadBlobs[f.Num] ||
			slices.ContainsFunc(r.lostTables, func(t *lostTable) bool { return t.refs[f.Num] > 0 }) {
			continue
		}
		r.lostTables = append(r.lostTables, &lostTable{name: f.Name, level: -1, ranges: []Range{{}},
			refs: map[uint64]uint64{f.Num: 1}, uncounted: true, loss: -1})
	}
}

// isAfter reports whether the store asks a table before this one.
func (t *lostTable) isAfter(p *piece) bool {
	switch {
	case p.level != t.level:
		return p.level < t.level
	case t.level == 0 && t.run == 0 && p.run == 0:
		return p.t.LargestSeq > t.last
	}
	return p.run > t.run
}
