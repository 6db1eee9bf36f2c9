package kv

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// A FilterCompaction is what CompactFilters has to do, or has done.
type FilterCompaction struct {
	Files int   // whose filters are not those that new files get
	Bytes int64 // that these files have, and about as many are written in their place
}

// StaleFilters returns the files that CompactFilters would rewrite. Their filters, of keys or of ranges, differ from
// what the options give to new files: in family, bits per key, prefixes, or in whether there are any. A range filter
// that a file has brought to the last level does not count.
//
// Under a FilterBudget the filters are compared with the share that a file has when no other one has more than its
// own. A filter counts as different if it has at least an eighth more or fewer bytes. Memtables are not counted. The
// call opens files that are not open, and reads no filter and no block.
func (d *DB) StaleFilters() (FilterCompaction, error) {
	var sum FilterCompaction
	stale, err := d.staleNow()
	for _, u := range stale {
		sum.add(u.tables)
	}
	return sum, err
}

func (f *FilterCompaction) add(tables []*version.Table) {
	for _, t := range tables {
		f.Files++
		f.Bytes += t.Size
	}
}

// CompactFilters rewrites the files whose filters are not those that the options give to new files (see StaleFilters).
// It rewrites one after the other, each in its place: levels and sorted runs stay as they are, and files with the
// right filters are not read. Files are compressed, and cut into blocks, as new ones are. What no reader can see is
// dropped as in any compaction. It needs free space for one file, or for one run of level 0. Reads and writes go on,
// and so do other compactions. Memtables are not written.
//
// Each file takes effect when it is written. If ctx ends, the error matches ctx.Err(), files that were
// rewritten stay so, and another call goes on where this one ended; so it is after any other error, and after a crash.
// It returns what was rewritten. Files that are damaged are left alone; if damage is found on the way, the others are
// rewritten all the same, and the error matches ErrCorruption.
func (d *DB) CompactFilters(ctx context.Context) (FilterCompaction, error) {
	var sum FilterCompaction
	if err := d.writable(); err != nil {
		return sum, err
	}
	stale, err := d.staleNow()
	var damage error
	for _, u := range stale {
		if err != nil {
			break
		}
		var done bool
		if done, err = d.compactInPlace(ctx, u); done {
			sum.add(u.tables)
		}
		if errors.Is(err, ErrCorruption) && d.writable() == nil {
			damage, err = cmp.Or(damage, err), nil
		}
	}
	return sum, cmp.Or(err, damage)
}

// A rewriteUnit is what is rewritten at once: a table, or a run of level 0, whose age is that of all its tables.
type rewriteUnit struct {
	run    version.RunID
	tables []*version.Table
}

// staleNow is staleFilters of the current version.
func (d *DB) staleNow() ([]rewriteUnit, error) {
	s := d.acquire(0)
	if s == nil {
		return nil, d.unreadable()
	}
	defer d.release(s, 0)
	return d.staleFilters(s.version)
}

// staleFilters returns what is to be rewritten of a version, the youngest first.
func (d *DB) staleFilters(v *version.Version) (units []rewriteUnit, err error) {
	plan := d.opts.filterPlan()
	for _, run := range v.Runs {
		stale := false
		for t := range run.All() {
			r, err := t.Open(&d.tables)
			if err != nil {
				if errors.Is(err, ErrCorruption) {
					continue
				}
				return nil, err
			}
			inputs := []*version.Table{t}
			want := plan.Fair(filterbudget.Tables{Version: v, To: run.ID(), Entries: t.Entries, Inputs: inputs})
			if t.Entries == 0 || !d.isStale(r.Properties(), want) {
				continue
			}
			if stale = true; run.Level > 0 {
				units = append(units, rewriteUnit{run.ID(), inputs})
			}
		}
		if stale && run.Level == 0 {
			units = append(units, rewriteUnit{run.ID(), run.Tables()})
		}
	}
	return units, nil
}

// filtersDiffer reports whether the filters of a file with such properties are not those that it would get now.
func (d *DB) filtersDiffer(p *sstable.Properties, want filterbudget.Filters) bool {
	return rangesDiffer(p, want.Ranges) || d.filterDiffers(p, want.Point, d.opts.FilterBudget > 0)
}

// isStale is filtersDiffer, but for a range filter that a file has brought with it to where it would get none.
func (d *DB) isStale(p *sstable.Properties, want filterbudget.Filters) bool {
	return rangesStale(p, want.Ranges, d.opts.RangeFilter) ||
		d.filterDiffers(p, want.Point, d.opts.FilterBudget > 0)
}

// rangesDiffer reports whether the range filter of a file is not the one that a policy would give it.
func rangesDiffer(p *sstable.Properties, want filterpolicy.RangePolicy) bool {
	spec := ""
	if want.Name() != filterbudget.NoRanges.Name() {
		spec = want.String()
	}
	return p.RangeFilterPolicy != spec
}

// rangesStale is rangesDiffer, but for the range filter that files elsewhere get.
func rangesStale(p *sstable.Properties, want, elsewhere filterpolicy.RangePolicy) bool {
	return rangesDiffer(p, want) && (want.Name() != filterbudget.NoRanges.Name() || rangesDiffer(p, elsewhere))
}

// filterDiffers reports whether the filter of a file with such properties is not the one that a policy would give it
// now. Shares of a budget are compared by their size.
func (d *DB) filterDiffers(p *sstable.Properties, want filterpolicy.Policy, share bool) bool {
	if want.Name() == filterbudget.None.Name() {
		return p.FilterFamily != ""
	}
	prefix := ""
	if d.opts.Prefix != nil {
		prefix = d.opts.Prefix.Name()
	}
	if p.FilterPrefix != prefix || p.PrefixOnly != d.opts.PrefixOnly {
		return true
	}
	if share && p.FilterFamily == "" && specFamily(p.FilterPolicy) == specFamily(want.String()) {
		return false // its builder declined
	}
	if share && sameFamily(p, want) {
		e := filterpolicy.Expected(want, int(p.FilterKeys))
		size := e.BitsPerKey * float64(p.FilterKeys) / 8
		return !e.OK || math.Abs(float64(p.FilterBytes)-size) > size/8+64
	}
	return p.FilterPolicy != want.String()
}

// sameFamily reports whether the filter of a file with such properties is of a policy's family. All with a salt have
// one name on disk: of which family they are apart from that the spec says.
func sameFamily(p *sstable.Properties, want filterpolicy.Policy) bool {
	if p.FilterFamily != want.Name() || want.Name() != filterpolicy.SaltedName {
		return p.FilterFamily == want.Name()
	}
	return specFamily(p.FilterPolicy) == specFamily(want.String())
}

// specFamily returns a spec without its last parameters.
func specFamily(spec string) string {
	if at := strings.LastIndexByte(spec, ':'); at >= 0 {
		return spec[:at]
	}
	return spec
}

// compactInPlace rewrites tables of a run in their place. It reports false if they are not there any more, or are
// known to be damaged.
func (d *DB) compactInPlace(ctx context.Context, u rewriteUnit) (done bool, err error) {
	c, err := d.beginManual(ctx, func() *compaction.Job {
		return d.compactionInput(d.current).RewriteFilters(u.run, u.tables)
	})
	err = d.runManual(ctx, c, err)
	return c != nil && err == nil, err
}

// runManual runs a compaction that beginManual has begun, if it has.
func (d *DB) runManual(ctx context.Context, c *runningCompaction, err error) error {
	if c != nil {
		err = d.compact(ctx, c)
		d.afterCompaction(c, err, true)
	}
	d.reschedule(func() {
		if c != nil {
			d.end(c)
		}
	})
	switch {
	case errors.Is(err, errClosing):
		return ErrClosed
	case errors.Is(err, base.ErrContextEnded):
		return base.ContextError(ctx, "a compaction was broken off")
	}
	return err
}
