package kv

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A tableOutput writes the tables of a flush or compaction: one after the other,
// each cut between two user keys, so that all versions of a key are in one table.
// Range tombstones are cut where the tables are. Call order: add* finish, or
// abort at any time.
type tableOutput struct {
	d          *DB
	level      int // of the tables
	filter     filterpolicy.Policy
	targetSize int64         // 0: one table
	tombstones *rangedel.Set // those to write
	stop       func() error  // nil: nothing ends the writing early

	w      *sstable.Writer
	file   vfs.WriteFile
	num    uint64
	start  []byte // the open table's span begins here; nil: at the first key
	tables []manifest.Table
}

// add appends an entry.
func (o *tableOutput) add(k base.InternalKey, value []byte) error {
	if o.w == nil {
		if err := o.open(); err != nil {
			return err
		}
	}
	return o.w.Add(k, value)
}

// full reports whether the open table has reached its size, so that it should be
// cut before the next user key.
func (o *tableOutput) full() bool {
	return o.targetSize > 0 && o.w != nil && o.w.Size() >= o.targetSize
}

// cut closes the open table; the next begins at key.
func (o *tableOutput) cut(key []byte) error {
	if err := o.close(key); err != nil {
		return err
	}
	o.start = bytes.Clone(key)
	return nil
}

func (o *tableOutput) open() error {
	num := o.d.newFileNum()
	f, err := o.d.fs.Create(o.d.path(manifest.FileTable, num))
	if err != nil {
		return err
	}
	f = o.d.compactionRate.limit(o.d, f, o.level == 0, o.stop)
	o.file, o.num = f, num
	o.w = sstable.NewWriter(f, &sstable.WriterOptions{
		BlockSize:      o.d.opts.BlockSize,
		IndexPartition: o.d.opts.IndexPartition,
		Compression:    o.d.opts.LevelCompression[o.level],
		Filter:         o.filter,
		Prefix:         o.d.opts.Prefix,
		PrefixOnly:     o.d.opts.PrefixOnly,
		Merger:         o.d.mergerName,
	})
	return nil
}

// close finishes the open table, whose span ends before end (nil: no bound).
func (o *tableOutput) close(end []byte) error {
	tombs := o.tombstones.Clip(nil, o.start, end)
	if o.w == nil {
		if len(tombs) == 0 {
			return nil
		}
		if err := o.open(); err != nil {
			return err
		}
	}
	for _, t := range tombs {
		if err := o.w.AddTombstone(t); err != nil {
			return err
		}
	}
	info, err := o.w.Finish()
	if err != nil {
		return err
	}
	if err := o.file.Sync(); err != nil {
		return err
	}
	err = o.file.Close()
	o.w, o.file = nil, nil
	o.tables = append(o.tables, tablemeta.Of(o.num, info, tombs))
	return err
}

// finish closes the last table and makes the names of all durable.
func (o *tableOutput) finish() ([]manifest.Table, error) {
	if err := o.close(nil); err != nil {
		return nil, err
	}
	if len(o.tables) == 0 {
		return nil, nil
	}
	return o.tables, o.d.fs.SyncDir(o.d.dir)
}

// abort closes and removes what was written: no version will list it.
func (o *tableOutput) abort() {
	if o.file != nil {
		_ = o.file.Close() // it is removed next
		o.tables = append(o.tables, manifest.Table{Num: o.num})
	}
	for _, t := range o.tables {
		o.d.removeTable(t.Num)
	}
	o.w, o.file, o.tables = nil, nil, nil
}

// removeTable removes a file that no version lists, and reports whether it is gone. If
// not, the next Open tries again.
func (d *DB) removeTable(num uint64) bool {
	name := d.path(manifest.FileTable, num)
	if err := d.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("an unused table could not be removed", "file", name, "error", err)
		return false
	}
	return true
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

// entriesOf returns the number of point entries of tables.
func entriesOf(tables []*version.Table) (n uint64) {
	for _, t := range tables {
		n += t.Entries
	}
	return n
}
