package advise

import (
	"cmp"

	"github.com/siftkv/siftkv/filterpolicy"
)

// A Style is what blocks lookups would read under a style of compaction, with the filters of new
// files: in a tree of middling fullness, and in one that is about to be compacted. It follows
// from the sizes that levels are to have; at a given moment a tree has any number of runs up to
// Most.
type Style struct {
	Style  string  `json:"style"`
	Now    bool    `json:"now"`
	Runs   float64 `json:"runs"` // sorted runs, in the middle
	Most   float64 `json:"most_runs"`
	Found  float64 `json:"found_blocks"`  // of a key that is there, in the middle
	Absent float64 `json:"absent_blocks"` // of one that is not, in the middle
	Worst  float64 `json:"absent_blocks_worst"`
}

// Names of the styles, as their options text.
const (
	leveled     = "leveled"
	tiered      = "tiered"
	lazyLeveled = "lazy-leveled"
)

// tier is runs of a size; in the middle there may be one and a half.
type tier struct{ bytes, middle, most float64 }

// Rules of package kv.
const (
	levelFactor  = 10 // how many times larger a level may be than the one above
	maxRewritten = 12 // compactions of level 0, up to which a level is the base level
)

// styles predicts what other styles of compaction would read. It returns nothing for a store without files.
func (m *Model) styles() []Style {
	s := m.store
	policy, err := filterpolicy.Parse(cmp.Or(s.Filter, "none"))
	total := 0.0
	for i := range s.Files {
		total += float64(s.Files[i].Bytes)
	}
	if err != nil || total == 0 {
		return nil
	}
	perKey := total / float64(max(1, s.Keys()))
	var all []Style
	for _, style := range []string{leveled, tiered, lazyLeveled} {
		st := Style{Style: style, Now: style == s.Compaction}
		tiers := s.tiers(style, total)
		left := 0.0
		for _, t := range tiers {
			left += t.bytes * t.middle
		}
		comes := 1.0
		for _, t := range tiers {
			e, _ := expected(policy, uint64(max(1, t.bytes/perKey)))
			st.Runs, st.Most = st.Runs+t.middle, st.Most+t.most
			st.Absent, st.Worst = st.Absent+t.middle*e.FPR, st.Worst+t.most*e.FPR
			here := min(1, t.bytes*t.middle/max(left, 1))
			st.Found += comes * (here + (1-here/2)*t.middle*e.FPR)
			comes, left = comes*(1-here), left-t.bytes*t.middle
		}
		last := tiers[len(tiers)-1]
		e, _ := expected(policy, uint64(max(1, last.bytes/perKey)))
		st.Found = max(1, st.Found-comes*e.FPR)
		all = append(all, st)
	}
	return all
}

// tiers returns the runs of a tree of total bytes, the youngest first.
func (s *Store) tiers(style string, total float64) []tier {
	t := s.Tree
	runs, level0 := float64(cmp.Or(t.RunsPerLevel, 4)), float64(cmp.Or(t.Level0, 4))
	base := float64(cmp.Or(t.BaseLevel, 64<<20))
	flush := min(float64(cmp.Or(t.Memtable, 64<<20)), base)
	all := []tier{{flush, (level0 - 1) / 2, level0 - 1}}
	if style == leveled {
		batch := min(base, 2*flush)
		last := total / cmp.Or(t.Space, 1.3)
		var below []tier
		for size, n := last, 0; ; n++ {
			below = append([]tier{{size, 1, 1}}, below...)
			if size <= maxRewritten*batch {
				break
			}
			if n == 0 {
				size = max(base, (total-last-1.5*batch)*(levelFactor-1)/levelFactor)
			} else {
				size = max(base, size/levelFactor)
			}
			if n > 5 || size >= below[0].bytes {
				break
			}
		}
		return append(all, below...)
	}
	left := total - flush*all[0].middle
	var below []tier
	for size := flush * level0; left-size*(runs-1) > size; size *= runs {
		below = append(below, tier{size, (runs - 1) / 2, runs - 1})
		left -= size * (runs - 1) / 2
	}
	if last := max(left, flush); style == lazyLeveled {
		below = append(below, tier{last, 1, 1})
	} else {
		n := min(runs-1, max(1, (runs-1)/2))
		below = append(below, tier{last / n, n, runs - 1})
	}
	return append(all, below...)
}
