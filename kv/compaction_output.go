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

// writeTables writes what a pass leaves into tables of a level. A table is cut at its target
// size, and where it would overlap too much below; a flush, with below nil, makes one table.
func (d *DB) writeTables(it *iterator.Compaction, level int, filter filterpolicy.Policy,
	below *overlapBelow) (tables []manifest.Table, err error) {
	defer d.countPass(it)
	out := d.tableWriter(it, level, filter)
	defer func() {
		if err != nil {
			out.Abort()
		}
	}()
	var last []byte
	for ok := it.First(); ok; ok = it.Next() {
		if below != nil {
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
	return out.Finish()
}

// tableWriter returns a writer of the tables that a pass makes for a level.
func (d *DB) tableWriter(it *iterator.Compaction, level int, filter filterpolicy.Policy) *tablemeta.Writer {
	return &tablemeta.Writer{
		FS: d.fs, Dir: d.dir, Log: d.log, NewNum: d.newFileNum, TargetSize: d.targetFileSize(level),
		Tombstones: it.Kept,
		Wrap: func(f vfs.WriteFile) vfs.WriteFile {
			return d.compactionRate.limit(d, f, level == 0, it.Stop)
		},
		Options: &sstable.WriterOptions{
			BlockSize:      d.opts.BlockSize,
			IndexPartition: d.opts.IndexPartition,
			Compression:    d.opts.LevelCompression[level],
			Filter:         filter,
			Prefix:         d.opts.Prefix,
			PrefixOnly:     d.opts.PrefixOnly,
			Merger:         d.operands.mergerName,
		},
	}
}

// Tables of level 0 come and go while those below stay, so their share is not set
// aside: with many files in level 0 the filters take a little more than the budget,
// rather than a little less all the time.

// filterFor returns the policy of the filters of new tables in a place, which take
// in so many entries and replace the inputs: Options.Filter, or under a
// FilterBudget the policy of its family that the level's share of the budget pays
// for; none if that is too little.
func (d *DB) filterFor(v *version.Version, to version.RunID, entries uint64,
	inputs []*version.Table) filterpolicy.Policy {
	if d.opts.FilterBudget == 0 {
		return d.opts.Filter
	}
	runs := []uint64{0} // runs[0]: the new tables, with the run that they join
	if to.Level == 0 {
		for _, t := range v.Levels[0].Tables {
			if !slices.Contains(inputs, t) {
				runs = append(runs, t.Entries)
			}
		}
	}
	replaced := map[*version.Table]bool{}
	for _, t := range inputs {
		replaced[t] = true
	}
	for _, r := range v.Runs {
		sum := uint64(0)
		for _, t := range r.Tables {
			if !replaced[t] {
				sum += t.Entries
			}
		}
		if to == (version.RunID{Level: r.Level, Run: r.Num}) {
			runs[0] += sum
		} else if sum > 0 {
			runs = append(runs, sum)
		}
	}
	runs[0] += entries
	for range d.runsToCome(v, to) {
		runs = append(runs, entries)
	}
	bits := filterpolicy.Spread(d.opts.Filter, d.opts.FilterBudget, runs)[0]
	if p, ok := filterpolicy.WithBits(d.opts.Filter, bits); ok {
		return p
	}
	return noFilter
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
