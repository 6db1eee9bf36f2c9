package filterbudget

import (
	"math"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/sstable"
)

// Differs reports whether the filters of a file with such properties are not those that it would get now.
func (p *Plan) Differs(have *sstable.Properties, want Filters) bool {
	return rangesDiffer(have, want.Ranges) || p.PointDiffers(have, want.Point)
}

// Stale is Differs, except for a range filter that a file has brought with it to where it would get none.
func (p *Plan) Stale(have *sstable.Properties, want Filters) bool {
	return p.RangesStale(have, want.Ranges) || p.PointDiffers(have, want.Point)
}

// RangesStale is Stale for range filters.
func (p *Plan) RangesStale(have *sstable.Properties, want filterpolicy.RangePolicy) bool {
	return rangesDiffer(have, want) && (want.Name() != NoRanges.Name() || rangesDiffer(have, p.Ranges))
}

// rangesDiffer reports whether the range filter of a file is not the one that a policy would give it.
func rangesDiffer(have *sstable.Properties, want filterpolicy.RangePolicy) bool {
	spec := ""
	if want.Name() != NoRanges.Name() {
		spec = want.String()
	}
	return have.RangeFilterPolicy != spec
}

// PointDiffers is Differs for the filter of keys. Shares of a budget are compared by their size if it is known.
func (p *Plan) PointDiffers(have *sstable.Properties, want filterpolicy.Policy) bool {
	if want.Name() == None.Name() {
		return have.FilterFamily != ""
	}
	if have.FilterPrefix != p.Prefix || have.PrefixOnly != p.PrefixOnly {
		return true
	}
	share := p.Budget > 0
	if share && have.FilterFamily == "" && specFamily(have.FilterPolicy) == specFamily(want.String()) {
		return false // its builder declined
	}
	if e := filterpolicy.Expected(want, int(have.FilterKeys)); share && e.OK && sameFamily(have, want) {
		size := e.BitsPerKey * float64(have.FilterKeys) / 8
		return math.Abs(float64(have.FilterBytes)-size) > size/8+64
	}
	return have.FilterPolicy != want.String()
}

// sameFamily reports whether the filter of a file with such properties is of a policy's family. Salted
// policies share one name on disk: their spec names the family.
func sameFamily(have *sstable.Properties, want filterpolicy.Policy) bool {
	if have.FilterFamily != want.Name() || want.Name() != filterpolicy.SaltedName {
		return have.FilterFamily == want.Name()
	}
	return specFamily(have.FilterPolicy) == specFamily(want.String())
}

// specFamily returns a spec without its last parameters.
func specFamily(spec string) string {
	if at := strings.LastIndexByte(spec, ':'); at >= 0 {
		return spec[:at]
	}
	return spec
}
