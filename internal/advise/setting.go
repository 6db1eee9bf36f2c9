package advise

import (
	"github.com/siftkv/siftkv/filterpolicy"
)

// A Setting is what a store could be opened with. The zero value of a field leaves the store's own.
type Setting struct {
	// Filter of all files, once they are rewritten; empty: each file keeps its own.
	Filter string `json:"filter,omitempty"`
	// Budget is the bytes of filters that are spread over the runs (kv.Options.FilterBudget);
	// Filter is then only a family.
	Budget int64 `json:"filter_budget,omitempty"`
	Cache  int64 `json:"cache"` // bytes of the block cache
	// Ranges is the range filter of all files except those of the last run
	// (kv.Options.RangeFilter); empty: each file keeps its own.
	Ranges string `json:"range_filter,omitempty"`
	// BlockSize is that of data blocks in all files, in bytes (kv.Options.BlockSize); 0: each file keeps its own.
	BlockSize int64 `json:"block_size,omitempty"`
	// Remembered is kv.Options.FalsePositiveMemory.
	Remembered int64 `json:"false_positive_memory,omitempty"`
}

// filters returns the setting without what is no filter.
func (o Setting) filters() Setting {
	return Setting{Filter: o.Filter, Budget: o.Budget, Ranges: o.Ranges}
}

// filters are what theory says of the filter of each file of a store under a setting.
type filters struct {
	rates  []float64 // by file
	ranges []float64 // by file: of range filters, for narrow ranges without an entry
	bytes  int64     // of all
	known  bool      // theory knows every one of them
}

// filtersOf returns the filters of a store under a setting. Filters that theory does not know
// count as none.
func (s *Store) filtersOf(o *Setting) filters {
	f := filters{rates: make([]float64, len(s.Files)), ranges: make([]float64, len(s.Files)), known: true}
	policies := s.Policies(o)
	ranges, err := filterpolicy.ParseRange(o.Ranges)
	f.known = o.Ranges == "" || err == nil
	for i := range s.Files {
		file := &s.Files[i]
		e, ok := file.filterNow()
		if policies != nil {
			e, ok = expected(policies[file.Run], file.Keys)
			f.bytes += int64(e.BitsPerKey * float64(file.Keys) / 8)
		} else {
			f.bytes += file.FilterBytes
		}
		r, size := file.rangesNow(), file.RangeBytes
		if ranges != nil {
			r, size = noFilter, 0
			if file.Run < s.Runs-1 {
				r = expectedRange(ranges, file.Keys)
				size = int64(r.BitsPerKey * float64(file.Keys) / 8)
			}
		}
		f.ranges[i] = r.FPR
		f.bytes += size
		if f.rates[i] = e.FPR; !ok {
			f.rates[i], f.known = 1, false
		}
	}
	return f
}

// Policies returns the policy of each run under a setting, nil if files keep their own filters. A
// policy that is nil is none.
func (s *Store) Policies(o *Setting) []filterpolicy.Policy {
	if o.Filter == "" {
		return nil
	}
	all := make([]filterpolicy.Policy, s.Runs)
	p, err := filterpolicy.Parse(o.Filter)
	if err != nil {
		return all
	}
	bits := []float64(nil)
	if o.Budget > 0 {
		bits = s.spread(p, o.Budget)
	}
	for run := range all {
		if all[run] = p; o.Budget > 0 {
			if all[run] = nil; bits[run] > 0 {
				all[run], _ = filterpolicy.WithBits(p, bits[run])
			}
		}
	}
	return all
}

// spread returns the bits per key that runs get of a budget. As in the store, those below level 0 share it as if that
// were empty, and those of level 0 have on top what would be theirs of all.
func (s *Store) spread(p filterpolicy.Policy, budget int64) []float64 {
	keys := s.runKeys()
	bits := filterpolicy.Spread(p, budget, keys)
	for i := range s.Files {
		if s.Files[i].Level == 0 {
			keys[s.Files[i].Run] = 0
		}
	}
	for run, below := range filterpolicy.Spread(p, budget, keys) {
		if keys[run] > 0 {
			bits[run] = below
		}
	}
	return bits
}

// expected is filterpolicy.Expected, of a policy that may be nil.
func expected(p filterpolicy.Policy, keys uint64) (filterpolicy.Expectation, bool) {
	if p == nil {
		return noFilter, true
	}
	e := filterpolicy.Expected(p, int(keys))
	return e, e.OK
}
