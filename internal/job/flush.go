package job

import (
	"context"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
)

// A flush is written in ranges of keys, as a compaction is, if that makes it shorter. There is at most one for each
// idle thread, so that they are merged, compressed and synced at the same time. Each range goes into a table of its
// own, and together the tables are one run.

const (
	// minFlushed is the minimum of bytes of memtables for a range of a flush: below it, more files cost more than the
	// time that they save.
	minFlushed = 8 << 20
	// maxFlushed bounds the ranges of a flush, lest level 0 have hundreds of files.
	maxFlushed = 16
	// samplesPerRange is how many entries of each memtable are sampled for each range of a flush: ranges differ by a
	// tenth then.
	samplesPerRange = 256
)

// A Flush is memtables that become one run of level 0.
type Flush struct {
	Version   *version.Version     // that the run is for; it must stay referred to
	Memtables []*memtable.Memtable // oldest first
	Snapshots []base.SeqNum        // ascending
	Limit     base.SeqNum          // what is newer is left out
	Values    *values.Flush        // nil: the run is one table that is not the store's, without separated values
}

// Do writes the memtables without what no snapshot sees. There is no table if nothing is left. After an error there
// are no new files; the output then only counts.
func (f *Flush) Do(env *Env) (out Output, err error) {
	err = callback.Do(callback.OfOptions, func() (err error) {
		out, err = f.write(env)
		return err
	})
	callback.Log(env.Log, err)
	return out, err
}

func (f *Flush) write(env *Env) (Output, error) {
	var tombs []rangedel.Tombstone
	entries := 0
	for _, m := range f.Memtables {
		entries += m.Len()
		tombs = m.Tombstones().AppendAll(tombs)
	}
	tombs = slices.DeleteFunc(tombs, func(t rangedel.Tombstone) bool { return t.Seq > f.Limit })
	filters := env.Filters.For(filterbudget.Tables{Version: f.Version, Entries: uint64(entries)})
	// The flush has a thread of its own.
	return env.mergeRanges(context.Background(), env.threads(1), f.ranges(env), func(ctx context.Context,
		r *keyRange) error {
		r.pass = f.pass(ctx, env, tombs, r.span)
		r.out = env.tableWriter(r.pass, 0, 0, filters)
		r.out.Separation, r.out.Rewrite = env.separation(f.Version, 0), f.Values.Inline(f.Version)
		if f.Values == nil {
			r.out.Separation.From = 0
		} else {
			r.out.Hidden = HiddenBy(env.Tables, f.Version, f.Version.Runs)
		}
		return r.write(nil)
	})
}

// ranges returns the ranges of the flush, in order. They cover all keys.
func (f *Flush) ranges(env *Env) []version.Span {
	size := int64(0)
	for _, m := range f.Memtables {
		size += m.Size()
	}
	n := int64(1)
	switch {
	case f.Values == nil:
	case env.Sizes.RangeSize > 0:
		n = size / env.Sizes.RangeSize
	default:
		n = min(size/minFlushed, int64(1+env.threads(1)-env.Threads.Busy()))
	}
	if n = min(n, maxFlushed); n < 2 {
		return make([]version.Span, 1)
	}
	var parts []compaction.Part
	for _, m := range f.Memtables {
		first, sum := len(parts), int64(0)
		m.Sample(int(n)*samplesPerRange, func(user []byte, size int64) {
			parts = append(parts, compaction.Part{End: user, Size: size})
			sum += size
		})
		weight := float64(m.Size()) / float64(sum) // however many samples it has
		for i := range parts[first:] {
			parts[first+i].Size = int64(float64(parts[first+i].Size) * weight)
		}
	}
	return compaction.EvenRanges(parts, int(n))
}

// pass returns an iterator over what stays of the memtables, with tombs, in a span.
func (f *Flush) pass(ctx context.Context, env *Env, tombs []rangedel.Tombstone,
	span version.Span) *iterator.Compaction {
	var iters []iterator.Iter
	for _, m := range f.Memtables {
		it := iterator.Iter(m.NewIter())
		if f.Limit < base.MaxSeqNum {
			it = iterator.UpTo(it, f.Limit)
		}
		iters = append(iters, it)
	}
	return iterator.NewCompaction(iters, span.Clip(nil, tombs), iterator.CompactionOptions{
		Snapshots: f.Snapshots, Keys: span, Stop: env.stop(ctx), MergeOperands: env.Merge, Now: env.Now(),
		ReadSeparated: env.readForOperands(f.Version),
	})
}
