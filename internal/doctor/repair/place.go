package repair

import (
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// The store reads places in order, and the first that has a version of a key answers. First come
// the runs of level 0 by descending largest sequence number, or by the smallest if these are equal.
// Then comes one level after the other, its sorted runs by descending number. So of two tables that
// share keys, the one that is read first must have the newer version of every key. That holds if
// all sequence numbers of the one are above all of the other's. If they interleave, the tables are
// merged into one run, ordered by internal keys. (Range tombstones hide by sequence number in any
// place.) A run spans more than the tables it is made of and may interleave with others, so this is
// repeated until none do.

// ordered reports whether the manifest's order fits the content of the pieces: no tables of a run
// overlap, and what the logs add to level 0 is newer than all tables.
func (r *repairer) ordered() bool {
	type place struct {
		level int
		run   uint64
	}
	runs := map[place][]*piece{}
	newestLog, logs := uint64(0), false
	newest := uint64(0)
	for _, p := range r.pieces {
		if p.level < 0 {
			return false
		}
		if p.level > 0 || p.run > 0 {
			runs[place{p.level, p.run}] = append(runs[place{p.level, p.run}], p)
		}
		if !p.kept && p.level == 0 && len(p.from) > 0 && isLog(p.from[0]) {
			newestLog, logs = uint64(p.t.SmallestSeq), true
			continue
		}
		newest = max(newest, uint64(p.t.LargestSeq))
	}
	if logs && newestLog <= newest {
		return false
	}
	for _, tables := range runs {
		slices.SortFunc(tables, func(a, b *piece) int { return slices.Compare(a.t.Smallest, b.t.Smallest) })
		for i := 1; i < len(tables); i++ {
			if overlap(&tables[i-1].t, &tables[i].t) {
				return false
			}
		}
	}
	return true
}

func isLog(name string) bool {
	kind, _ := manifest.ParseFileName(name)
	return kind == manifest.FileWAL
}

// overlap reports whether two tables may share a key.
func overlap(a, b *manifest.Table) bool { return a.Overlaps(b.Smallest, b.UpperBound()) }

// interleave reports whether neither of two tables is newer than the other in all
// its entries.
func interleave(a, b *manifest.Table) bool {
	return a.SmallestSeq <= b.LargestSeq && b.SmallestSeq <= a.LargestSeq
}

// place gives every piece a level by its sequence numbers, one run in each.
func (r *repairer) place() error {
	groups := make([]group, len(r.pieces))
	for i, p := range r.pieces {
		groups[i] = group{hull: p.t, pieces: []*piece{p}}
	}
	groups, err := r.uniteShared(groups)
	if err != nil {
		return err
	}
	groups = unite(groups)
	r.pieces = nil
	for _, g := range groups {
		pieces, err := r.merge(&g)
		if err != nil {
			return err
		}
		r.pieces = append(r.pieces, pieces...)
	}
	// Oldest first: each goes right above the highest older table that it overlaps, or
	// into the last level.
	slices.SortFunc(r.pieces, func(a, b *piece) int {
		return cmp.Or(cmp.Compare(a.t.LargestSeq, b.t.LargestSeq), cmp.Compare(a.age(), b.age()),
			cmp.Compare(a.t.Num, b.t.Num))
	})
	for i, p := range r.pieces {
		p.level, p.run = manifest.NumLevels-1, 0
		for _, older := range r.pieces[:i] {
			if overlap(&p.t, &older.t) {
				p.level = min(p.level, max(older.level-1, 0))
			}
		}
	}
	return nil
}

// A group is pieces that are to become one run.
type group struct {
	hull   manifest.Table // bounds of keys and sequence numbers, nothing else
	pieces []*piece
	shared bool // several entries of a table have handles of one record
}

// unite joins groups until no two overlap in keys and interleave in sequence
// numbers.
func unite(groups []group) []group {
	for i := 0; i < len(groups); i++ {
		for j := 0; j < len(groups); j++ {
			if i == j || !interleave(&groups[i].hull, &groups[j].hull) || !overlap(&groups[i].hull, &groups[j].hull) {
				continue
			}
			into := &groups[min(i, j)]
			from := groups[max(i, j)]
			into.join(from)
			groups = slices.Delete(groups, max(i, j), max(i, j)+1)
			i, j = min(i, j), -1 // the hull has grown: check all others again
		}
	}
	return groups
}

func (g *group) join(o group) {
	h, t := &g.hull, &o.hull
	if slices.Compare(t.Smallest, h.Smallest) < 0 {
		h.Smallest = t.Smallest
	}
	switch c := rangedel.CompareEnds(h.Largest, t.Largest); {
	case c < 0:
		h.Largest, h.LargestExclusive = t.Largest, t.LargestExclusive
	case c == 0:
		h.LargestExclusive = h.LargestExclusive && t.LargestExclusive
	}
	h.SmallestSeq, h.LargestSeq = min(h.SmallestSeq, t.SmallestSeq), max(h.LargestSeq, t.LargestSeq)
	g.pieces, g.shared = append(g.pieces, o.pieces...), g.shared || o.shared
}
