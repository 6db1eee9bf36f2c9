package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/vfs"
)

// writeTables writes what a pass leaves into tables of a level. A table is cut at the writer's
// target size, and where it would overlap too much below; a flush, without cuts, makes one
// table.
func (d *DB) writeTables(it *iterator.Compaction, out *tablemeta.Writer,
	cuts *compaction.Cuts) ([]manifest.Table, error) {
	defer d.countPass(it)
	var last []byte
	for ok := it.First(); ok; ok = it.Next() {
		if cuts != nil {
			if err := cutGaps(out, cuts, it.Key.User); err != nil {
				return nil, err
			}
			if (cuts.TooMuch(it.Key.User) || out.Full()) && !bytes.Equal(last, it.Key.User) {
				if err := out.Cut(it.Key.User); err != nil {
					return nil, err
				}
				cuts.Begin()
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
	if cuts != nil {
		if err := cutGaps(out, cuts, nil); err != nil {
			return nil, err
		}
	}
	return out.Finish()
}

// cutGaps cuts at the gaps up to a key (nil: at all that are left).
func cutGaps(out *tablemeta.Writer, cuts *compaction.Cuts, key []byte) error {
	for gap := cuts.Gap(key); gap != nil; gap = cuts.Gap(key) {
		if err := out.Cut(gap); err != nil {
			return err
		}
	}
	return nil
}

// syncNames makes the names of new tables durable.
func (d *DB) syncNames(tables []manifest.Table) error {
	if len(tables) == 0 {
		return nil
	}
	return d.fs.SyncDir(d.dir)
}

// filterPlan returns what the options say of filters.
func (o *Options) filterPlan() *filterbudget.Plan {
	p := &filterbudget.Plan{Point: o.Filter, Ranges: o.RangeFilter, RangesOfLast: o.RangeFilterLastLevel,
		Budget: o.FilterBudget}
	if o.Compaction != Leveled {
		p.RunsPerLevel = o.RunsPerLevel
	}
	return p
}

// tableWriter returns a writer of the tables that a pass makes for a level.
func (d *DB) tableWriter(it *iterator.Compaction, level int, size int64,
	f filterbudget.Filters) *tablemeta.Writer {
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
			Filter:         f.Point,
			RangeFilter:    f.Ranges,
			Prefix:         d.opts.Prefix,
			PrefixOnly:     d.opts.PrefixOnly,
			Merger:         d.operands.mergerName,
		},
	}
}

// indexPartition is the size at which the indexes of new files are cut. It is smaller than usual once indexes take more
// than their share of MemoryLimit: the parts that no lookup asks are then on disk.
func (d *DB) indexPartition() int {
	if d.tables.IndexesShort() {
		return min(d.opts.IndexPartition, 32<<10)
	}
	return d.opts.IndexPartition
}
