package kv

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// writeTables writes what a pass leaves into tables of a level. A table is cut at the writer's
// target size, and where it would overlap too much below; a flush, with below nil, makes one
// table.
func (d *DB) writeTables(it *iterator.Compaction, out *tablemeta.Writer,
	below *overlapBelow) ([]manifest.Table, error) {
	defer d.countPass(it)
	var last []byte
	for ok := it.First(); ok; ok = it.Next() {
		if below != nil {
			if err := below.cutGaps(out, it.Key.User); err != nil {
				return nil, err
			}
			if (below.tooMuch(it.Key.User) || out.Full()) && !bytes.Equal(last, it.Key.User) {
				if err := out.Cut(it.Key.User); err != nil {
					return nil, err
				}
				below.bytes = 0
			}
			last = append(last[:0], it.Key.User...)
		}
		if err := out.Add(it.Key, it.Value); err != nil {
			return nil, err
		}
	}
	if err := it.Err(); err != nil {
		return nil, inputError{err}
	}
	if below != nil {
		if err := below.cutGaps(out, nil); err != nil {
			return nil, err
		}
	}
	return out.Finish()
}

// syncNames makes the names of new tables durable.
func (d *DB) syncNames(tables []manifest.Table) error {
	if len(tables) == 0 {
		return nil
	}
	return d.fs.SyncDir(d.dir)
}

// filters are the policies of the filters of new tables.
type filters struct {
	point  filterpolicy.Policy
	ranges filterpolicy.RangePolicy
}

// tableWriter returns a writer of the tables that a pass makes for a level.
func (d *DB) tableWriter(it *iterator.Compaction, level int, size int64, f filters) *tablemeta.Writer {
	return &tablemeta.Writer{
		FS: d.fs, Dir: d.dir, Log: d.log, NewNum: d.newFileNum, TargetSize: size,
		Tombstones: it.Kept,
		Wrap: func(f vfs.WriteFile) vfs.WriteFile {
			return d.compactionRate.limit(d, f, level == 0, it.Stop)
		},
		Options: &sstable.WriterOptions{
			BlockSize:      d.opts.BlockSize,
			IndexPartition: d.indexPartition(),
			Compression:    d.opts.LevelCompression[level],
			Filter:         f.point,
			RangeFilter:    f.ranges,
			Prefix:         d.opts.Prefix,
			PrefixOnly:     d.opts.PrefixOnly,
			Merger:         d.operands.mergerName,
		},
	}
}

// indexPartition is the size from which on the indexes of new files are cut: smaller than usual
// once indexes take more than their share of MemoryLimit, so that what of them is not asked
// is on disk.
func (d *DB) indexPartition() int {
	if d.tables.IndexesShort() {
		return min(d.opts.IndexPartition, 32<<10)
	}
	return d.opts.IndexPartition
}

// Tables of level 0 come and go while those below stay, so their share is not set
// aside: with many files in level 0 the filters take a little more than the budget,
// rather than a little less all the time.

// filtersFor returns the policies of the filters of new tables in a place, which take in so many entries
// and replace the inputs.
func (d *DB) filtersFor(v *version.Version, to version.RunID, entries uint64, inputs []*version.Table) filters {
	f := filters{d.filterFor(v, to, entries, inputs), d.opts.RangeFilter}
	if !d.opts.RangeFilterLastLevel && isOldest(v, to, inputs) {
		f.ranges = noRangeFilter
	}
	return f
}

// isOldest reports whether a place is the oldest run of the last level once the inputs are gone: the
// only one there is in a leveled store.
func isOldest(v *version.Version, to version.RunID, inputs []*version.Table) bool {
	if to.Level < lastLevel {
		return false
	}
	replaced := map[version.RunID]int{}
	for _, t := range inputs {
		if id, ok := v.RunOf(t); ok {
			replaced[id]++
		}
	}
	return !slices.ContainsFunc(v.Levels[lastLevel].Runs, func(r *version.Run) bool {
		return r.Num < to.Run && replaced[r.ID()] < r.Len()
	})
}

// filterFor returns the policy of the filters of new tables in a place, which take
// in so many entries and replace the inputs: Options.Filter, or under a
// FilterBudget the policy of its family that the level's share of the budget pays
// for; none if that is too little.
func (d *DB) filterFor(v *version.Version, to version.RunID, entries uint64,
	inputs []*version.Table) filterpolicy.Policy {
	if d.opts.FilterBudget == 0 {
		return d.opts.Filter
	}
	stay, keys := d.sharers(v, to, entries, inputs)
	bits := filterpolicy.Spread(d.opts.Filter, d.opts.FilterBudget, keys)
	// Tables that stay may have more than their share: they were written while there were
	// fewer keys. New tables have so much less, as far as that leaves them useful.
	over := 0.0
	for i, s := range stay {
		over += float64(s.bytes) - bits[i]*float64(s.keys)/8
	}
	budget := d.opts.FilterBudget - min(max(int64(over), 0), d.opts.FilterBudget/mostOver)
	return shareOf(d.opts.Filter, budget, keys)
}

// fairFilters is filtersFor once all files have the filters of the options: none that stays has more than its share of
// a FilterBudget.
func (d *DB) fairFilters(v *version.Version, to version.RunID, entries uint64, inputs []*version.Table) filters {
	f := d.filtersFor(v, to, entries, inputs)
	if d.opts.FilterBudget > 0 {
		_, keys := d.sharers(v, to, entries, inputs)
		f.point = shareOf(d.opts.Filter, d.opts.FilterBudget, keys)
	}
	return f
}

// shareOf returns the policy of a family that the first of several runs with so many keys gets of a budget.
func shareOf(family filterpolicy.Policy, budget int64, keys []uint64) filterpolicy.Policy {
	bits := filterpolicy.Spread(family, budget, keys)[0]
	if p, ok := filterpolicy.WithBits(family, bits); ok {
		return p
	}
	return noFilter
}

// sharers returns the runs that share a FilterBudget with new tables, and their keys with those that come: the first is
// the run that the new tables join.
func (d *DB) sharers(v *version.Version, to version.RunID, entries uint64, inputs []*version.Table) ([]filtered,
	[]uint64) {
	stay := d.runsThatStay(v, to, inputs)
	keys := make([]uint64, len(stay))
	for i, s := range stay {
		keys[i] = s.keys
	}
	keys[0] += entries
	for range d.runsToCome(v, to) {
		keys = append(keys, entries)
	}
	return stay, keys
}

// mostOver bounds what new tables pay for those that stay: a part of the budget.
const mostOver = 4

// filtered says what filters take, and of how many keys.
type filtered struct {
	keys  uint64
	bytes int64
}

// runsThatStay returns what is left of each run of a version without the inputs of a pass, the
// run that the pass writes to first.
func (d *DB) runsThatStay(v *version.Version, to version.RunID, inputs []*version.Table) []filtered {
	stay := make([]filtered, 1, 8)
	replaced := map[version.RunID]filtered{}
	for _, t := range inputs {
		if id, ok := v.RunOf(t); ok {
			sum := replaced[id]
			sum.keys += t.Entries
			sum.bytes += int64(t.FilterBytes)
			replaced[id] = sum
		}
	}
	others := v.Runs
	if to.Level > 0 {
		others = v.Below()
	}
	for _, r := range others {
		sum, less := r.Sums(), replaced[r.ID()]
		left := filtered{sum.Entries - less.keys, sum.FilterBytes - less.bytes}
		if to == r.ID() {
			stay[0] = left
		} else if left.keys > 0 {
			stay = append(stay, left)
		}
	}
	return stay
}

// runsToCome returns how many more runs, like one that is being written, a level of a
// tiered store will have before they are merged: their share is set aside, since runs
// keep the filters that they were written with.
func (d *DB) runsToCome(v *version.Version, to version.RunID) int {
	if d.opts.Compaction == Leveled || to.Level == 0 || to.Level == lastLevel {
		return 0
	}
	return max(d.opts.RunsPerLevel-v.NumRuns(to.Level)-1, 0)
}

// noFilter is the policy "none".
var noFilter = func() filterpolicy.Policy {
	p, err := filterpolicy.Parse("none")
	if err != nil {
		panic(err) // the family is built in
	}
	return p
}()

// noRangeFilter is the range policy "none".
var noRangeFilter = func() filterpolicy.RangePolicy {
	p, err := filterpolicy.ParseRange("none")
	if err != nil {
		panic(err) // the family is built in
	}
	return p
}()
