package job

import (
	"context"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
)

// A Compaction is a compaction that runs. Its version must stay referred to.
type Compaction struct {
	*compaction.Job
	Snapshots []base.SeqNum // ascending
}

// Do moves the inputs, or merges them into new tables, and returns the edit that replaces the inputs. After an error
// there are no new files; the output then only counts. The error is an InputError or a tablemeta.CandidateError if
// something could not be read, and base.ErrContextEnded if ctx has ended.
func (c *Compaction) Do(ctx context.Context, env *Env) (*manifest.Edit, Output, error) {
	e, out := &manifest.Edit{}, Output{}
	for level, inputs := range c.Inputs {
		for _, t := range inputs {
			e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: level, Num: t.Num})
			out.Tables = append(out.Tables, t.Table)
		}
	}
	if c.Kind != compaction.Move {
		err := callback.Do(callback.OfOptions, func() (err error) {
			out, err = c.merge(ctx, env)
			return err
		})
		callback.Log(env.Log, err)
		if err != nil {
			return nil, out, err
		}
	}
	out.AddTo(e, c.Output, c.Run)
	return e, out, nil
}

func (c *Compaction) merge(ctx context.Context, env *Env) (Output, error) {
	in, err := c.open(env)
	if err != nil {
		return Output{}, InputError{err}
	}
	spans, err := c.ranges(env)
	if err != nil {
		return Output{}, InputError{err}
	}
	made := filterbudget.Tables{Version: c.Version, Inputs: c.Tables()}
	made.To, made.Entries = version.RunID{Level: c.Output, Run: c.Run}, version.EntriesOf(made.Inputs)
	filters := env.Filters.For(made)
	if c.Kind.Rules().FairFilters {
		filters = env.Filters.Fair(made)
	}
	size := env.Sizes.TargetSize(c.Version, c.Output)
	return env.mergeRanges(ctx, c.maxThreads(env), spans, func(ctx context.Context, r *keyRange) error {
		r.pass = c.pass(ctx, env, in, r.span)
		r.out = env.tableWriter(r.pass, c.Output, size, filters)
		r.out.Separation, r.out.Hidden = c.separation(env), HiddenBy(env.Tables, c.Version, c.Older)
		return r.write(env.Sizes.CutsOf(c.Job, r.span))
	})
}

// inputs are what is merged of runs, of which all tables are open.
type inputs struct {
	runs  []*version.Run
	tombs *rangedel.Set
}

func (c *Compaction) open(env *Env) (in inputs, err error) {
	var tombs []rangedel.Tombstone
	runs := map[version.RunID][]*version.Table{}
	for _, t := range c.Tables() {
		r, err := t.Open(env.Tables)
		if err != nil {
			return in, err
		}
		tombs = r.Tombstones().Clip(tombs, nil, nil)
		id, ok := c.Version.RunOf(t)
		if !ok { // its entries would be lost with it
			return in, fmt.Errorf("table %d is not in the version that is compacted", t.Num)
		}
		runs[id] = append(runs[id], t)
	}
	in.tombs = rangedel.NewSet(tombs)
	for _, r := range c.Version.Runs {
		if len(runs[r.ID()]) == 0 {
			continue
		}
		run, err := version.NewRun(r.Level, r.Num, runs[r.ID()])
		if err != nil {
			return in, err
		}
		in.runs = append(in.runs, run)
	}
	return in, nil
}

// ranges returns the ranges of the merge, in order. They cover all keys.
func (c *Compaction) ranges(env *Env) ([]version.Span, error) {
	n := env.Sizes.NumRanges(c.Job, env.threads(0))
	if n < 2 {
		return make([]version.Span, 1), nil
	}
	var parts []compaction.Part
	size := max(c.PartSize(n), 1)
	for _, t := range c.Tables() {
		some := t.Size/size + 1
		r, err := t.Open(env.Tables)
		if err != nil {
			return nil, err
		}
		cuts, err := r.Cuts(int(some - 1))
		if err != nil {
			return nil, err
		}
		if t.Largest != nil {
			cuts = append(cuts, t.Largest)
		}
		for _, end := range cuts {
			parts = append(parts, compaction.Part{End: end, Size: t.Size / some})
		}
	}
	return compaction.EvenRanges(parts, n), nil
}

// maxThreads returns how many threads may be busy when the ranges are merged. One is left to others where the
// compaction may take long and something else keeps level 0 short. In an idle store it has one thread.
func (c *Compaction) maxThreads(env *Env) int {
	if c.Reason == compaction.ReasonIdle {
		return 1
	}
	if c.Asked || env.Sizes.Style != compaction.Leveled {
		return env.threads(0) - 1
	}
	return env.threads(0)
}

// separation says which values go into blob files, and which come from others.
func (c *Compaction) separation(env *Env) tablemeta.Separation {
	s := env.separation(c.Version, c.Output)
	s.Candidates, s.Open = c.Candidates, env.Values.OpenPass(c.Version, len(c.Candidates))
	return s
}

// pass returns an iterator over what stays of the inputs in a span.
func (c *Compaction) pass(ctx context.Context, env *Env, in inputs, span version.Span) *iterator.Compaction {
	var iters []iterator.Iter
	sequential := sstable.IterOptions{Sequential: true}
	for _, r := range in.runs {
		iters = append(iters, iterator.NewRun(r, env.Tables, sequential))
	}
	return iterator.NewCompaction(iters, in.tombs.Clip(nil, span.Lo, span.Hi), iterator.CompactionOptions{
		Snapshots: c.Snapshots, Keys: span, Bottom: c.Bottom, BottomSpan: c.BottomSpan, Stop: env.stop(ctx),
		MergeOperands: env.Merge, Now: env.Now(), ReadSeparated: env.readForOperands(c.Version),
	})
}
