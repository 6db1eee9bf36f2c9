package job

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// An Output is the files that a job has written.
type Output struct {
	Tables    []manifest.Table
	Blobs     []manifest.BlobFile // that the tables have values in, and none before had
	Relocated uint64              // bytes of records that were copied from other blob files
	Stats     iterator.CompactionStats
}

// add takes in what was written of a range.
func (o *Output) add(r *keyRange) {
	o.Tables = append(o.Tables, r.tables...)
	if r.out != nil {
		o.Blobs = append(o.Blobs, r.out.Blobs()...)
		o.Relocated += r.out.Relocated()
	}
	if r.pass != nil {
		o.Stats.Add(&r.pass.Stats)
	}
}

// Bytes returns the size of all files.
func (o *Output) Bytes() (n int64) {
	for _, t := range o.Tables {
		n += t.Size
	}
	return n + o.BlobBytes()
}

// BlobBytes returns the size of the blob files.
func (o *Output) BlobBytes() (n int64) {
	for _, b := range o.Blobs {
		n += b.Size
	}
	return n
}

// AddTo adds the files to an edit: the tables to a run, or in level 0 as a new run.
func (o *Output) AddTo(e *manifest.Edit, level int, run uint64) {
	if level == 0 && len(o.Tables) > 1 {
		run = o.Tables[0].Num
	}
	for _, t := range o.Tables {
		e.Added = append(e.Added, manifest.AddedTable{Level: level, Run: run, Table: t})
	}
	e.AddedBlobs = append(e.AddedBlobs, o.Blobs...)
}

// write writes what the range's pass leaves into tables. A table ends at the writer's target size, and at the cuts; a
// flush, without cuts, makes one table.
func (r *keyRange) write(cuts *compaction.Cuts) (err error) {
	it, out := r.pass, r.out
	var last []byte
	for ok := it.First(); ok; ok = it.Next() {
		if cuts != nil {
			if err := r.cutGaps(cuts, it.Key.User, false); err != nil {
				return err
			}
			if (cuts.TooMuch(it.Key.User) || out.Full()) && !bytes.Equal(last, it.Key.User) {
				if err := out.Cut(it.Key.User); err != nil {
					return err
				}
				cuts.Begin()
			}
			last = append(last[:0], it.Key.User...)
		}
		if err := out.Add(it.Key, it.Value); err != nil {
			return err
		}
	}
	if err := it.Err(); err != nil {
		return InputError{err}
	}
	if cuts != nil {
		if err := r.cutGaps(cuts, nil, true); err != nil {
			return err
		}
	}
	r.tables, err = out.Finish()
	return err
}

// cutGaps cuts at the gaps up to a key, or at the end at all that are left.
func (r *keyRange) cutGaps(cuts *compaction.Cuts, key []byte, end bool) error {
	for gap := cuts.Gap(key, end); gap != nil; gap = cuts.Gap(key, end) {
		if err := r.out.Cut(gap); err != nil {
			return err
		}
	}
	return nil
}

// smallPartition is the size at which the indexes of new files are cut, in bytes, once indexes take more than their
// share of the memory.
const smallPartition = 32 << 10

// tableWriter returns a writer of the tables that a pass makes for a level.
func (e *Env) tableWriter(it *iterator.Compaction, level int, size int64, f filterbudget.Filters) *tablemeta.Writer {
	o := e.Format
	o.Compression, o.Filter, o.RangeFilter = e.Sizes.Compression[level], f.Point, f.Ranges
	if e.Tables.IndexesShort() { // the parts that no lookup asks are then on disk
		o.IndexPartition = min(o.IndexPartition, smallPartition)
	}
	return &tablemeta.Writer{
		FS: e.FS, Dir: e.Dir, Log: e.Log, NewNum: e.NewNum, TargetSize: size, Tombstones: it.Kept, Options: &o,
		Wrap: func(f vfs.WriteFile) vfs.WriteFile { return e.Rate.limit(f, level == 0, it.Stop) },
	}
}

// separation says which values go into blob files in a job that writes to a level.
func (e *Env) separation(v *version.Version, level int) tablemeta.Separation {
	return tablemeta.Separation{From: e.SeparateFrom, TargetSize: e.Sizes.NewBlobSize(v),
		Compression: e.Sizes.Compression[level], ID: func(num uint64) uint64 { return e.Values.ID(v, num) }}
}

// readForOperands returns a function that reads separated values of a version, to be combined with operands. It leaves
// a value unread that is longer than MaxMerged.
func (e *Env) readForOperands(v *version.Version) func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
	return func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
		h, _, err := values.HandleOf(k.User, value, k.Kind())
		switch {
		case err != nil:
			return dst, err
		case h.Size > e.MaxMerged:
			return dst, iterator.ErrStaysSeparated
		}
		return e.Values.Append(dst, v, k.User, h)
	}
}
