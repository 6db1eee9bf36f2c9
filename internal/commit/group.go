package commit

import (
	"errors"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/wal"
)

// commitGroup writes a group to the log and to the memtable, and publishes it up to the last batch
// that needs no sync. It marks those that need one. If the group has no writes, their sync is for
// what is visible. Higher numbers, if there are any, are of failed writes, since no other sync is
// under way. Such a number, visible and in no file, would look like a loss.
func (p *Pipeline) commitGroup(group []*request, size int) error {
	var mem *memtable.Memtable
	if size > 0 { // else there is no write that needs room
		arena := 0
		for _, r := range group {
			arena += r.arena
		}
		var err error
		own := group[0].own
		if mem, err = p.store.MakeRoom(group[0].ctx, arena, size, own); err != nil {
			return err
		}
		if own == nil {
			defer mem.Release(arena)
		}
	}
	if group, size = p.admit(group, size); len(group) == 0 {
		return nil
	}
	level := Buffered
	for _, r := range group {
		level = min(level, r.level)
	}
	last, log := base.SeqNum(p.store.Visible.Load()), p.logs.current
	if size > 0 {
		if err := p.write(mem, group, size, level); err != nil {
			return err
		}
		last = p.seq
	} else if err := p.flushRecords(); err != nil {
		return p.Fail(writingLog, err)
	}
	if level == Synced {
		p.syncs.last, p.syncs.log = last, log
		log.HoldMarks(true) // until these writes are visible
		for _, r := range group {
			r.syncs = r.level == Synced
			if r.batch == nil {
				r.seq = base.SeqNum(p.store.Visible.Load())
			}
		}
	}
	return nil
}

// write is commitGroup for the writers of a group; there are some.
func (p *Pipeline) write(mem *memtable.Memtable, group []*request, size int, level Level) error {
	group = writers(group)
	used, values := manifest.Features(0), false
	for _, r := range group {
		used |= r.batch.Features
		if r.large = p.store.Values != nil && p.store.Values.Has(&r.batch.Writer); r.large {
			values = true
			used |= manifest.FeatureSeparatedInLogs
		}
	}
	if used&^p.features != 0 {
		if err := p.store.Enable(used); err != nil {
			return err
		}
		p.features |= used
	}
	for _, r := range group {
		for _, h := range r.batch.Held {
			mem.Hold(h.Held, h.Bytes)
		}
		r.batch.Held = nil
	}
	before := p.seq
	publish, err := p.number(group, p.logs.current, mem)
	if err == nil && values {
		err = p.store.Values.Flush()
	}
	if err == nil {
		err = p.writeLog(group, level)
	}
	if err != nil {
		return p.Fail(writingLog, err)
	}
	if err := p.applyGroup(mem, group, size); err != nil {
		return p.store.Fail("filling a memtable", true, err)
	}
	if used&manifest.FeatureMerge != 0 && p.store.Combine != nil {
		if err := foldOperands(mem, group, p.store.Combine); err != nil {
			return p.store.Fail("filling a memtable", true, err)
		}
	}
	if err := p.publish(publish); err != nil {
		return p.Fail(writingLog, err)
	}
	if group[0].own != nil {
		p.store.Filled()
	}
	p.Groups.Add(1)
	p.Writes.Add(uint64(p.seq - before))
	p.Bytes.Add(uint64(size))
	return nil
}

// writers returns the requests of a group that write.
func writers(group []*request) []*request {
	if !slices.ContainsFunc(group, (*request).onlySyncs) {
		return group
	}
	return slices.DeleteFunc(slices.Clone(group), (*request).onlySyncs) // the others need the group
}

// number gives the batches of a group their sequence numbers. It returns the last number that will be visible without a
// sync; 0 if none will. It writes large values with Values.Put; the requests then have batches with handles.
func (p *Pipeline) number(group []*request, log *wal.Writer, mem *memtable.Memtable) (publish base.SeqNum,
	err error) {
	for _, r := range group {
		first := p.seq + 1
		p.seq += base.SeqNum(r.batch.Len())
		r.seq = p.seq
		if r.level != Synced {
			publish = p.seq
		}
		r.batch.Seal(first)
		if r.large {
			if r.withHandles == nil {
				r.withHandles = &Batch{}
			}
			if err := p.store.Values.Put(&r.batch.Writer, first, log, mem, &r.withHandles.Writer); err != nil {
				return 0, err
			}
			r.batch = r.withHandles
			r.batch.Seal(first)
		}
	}
	return publish, nil
}

// applyGroup puts the batches of a group into the memtable: of a large group every writer its own, else the leader all.
func (p *Pipeline) applyGroup(mem *memtable.Memtable, group []*request, size int) (errs error) {
	if own := group[0].own; own != nil {
		b := group[0].batch
		b.Give()
		return mem.Fill(b.Record(), own)
	}
	if size >= ParallelBytes && len(group) > 1 {
		return applyParallel(mem, group)
	}
	if len(group) == 1 {
		return mem.Apply(group[0].batch.Record())
	}
	p.readers = p.readers[:0]
	for _, r := range group {
		reader, err := batchrepr.NewReader(r.batch.Record())
		p.readers, errs = append(p.readers, reader), errors.Join(errs, err)
	}
	defer clear(p.readers) // else they keep the records alive
	return errors.Join(errs, mem.ApplyGroup(p.readers...))
}

// applyParallel has every writer of a group put its own batch into the memtable. Range tombstones make a list, so the
// leader applies batches that have some. It is separate so that the common case of applyGroup allocates nothing.
func applyParallel(mem *memtable.Memtable, group []*request) (errs error) {
	var others sync.WaitGroup
	for _, r := range group[1:] {
		if r.batch.RangeDeletes == 0 {
			others.Add(1)
			r.mem, r.applied = mem, &others
			r.signal <- signalApply
		}
	}
	for i, r := range group {
		if i == 0 || r.batch.RangeDeletes > 0 {
			errs = errors.Join(errs, mem.Apply(r.batch.Record()))
		}
	}
	others.Wait()
	for _, r := range group {
		errs = errors.Join(errs, r.err)
	}
	return errs
}

// foldOperands makes folds of the operands of a group that is in the memtable.
func foldOperands(mem *memtable.Memtable, group []*request, combine memtable.Combine) (errs error) {
	for _, r := range group {
		if r.batch.Features&manifest.FeatureMerge != 0 {
			errs = errors.Join(errs, mem.FoldOperands(r.batch.Record(), combine))
		}
	}
	return errs
}

// Reads is what a transaction has read: its commit is refused if something of that was written meanwhile. The leader
// asks between groups, for writes that are in memtables or tables, visible or not, and against the batches before it in
// its group, which are in no memtable yet. A transaction is refused before anything of it is in the log; the others of
// the group share their sync as ever.
type Reads interface {
	// Validate returns an error if something was written. The last write that has a number is last.
	Validate(last base.SeqNum) error
	// ValidateIn returns an error if something is among the writes in m.
	ValidateIn(m *memtable.Memtable) error
}

// admit claims the requests of a group. Afterwards none can be abandoned; before, a batch and its reads may be the
// owner's again at any time. It returns the group and its bytes without the abandoned requests, and without the
// transactions that conflict with an earlier write. It sets the errors of the latter.
func (p *Pipeline) admit(group []*request, size int) ([]*request, int) {
	left := group
	var ahead *groupWrites
	for i, r := range group {
		before := left[:min(i, len(left))]
		drop := r.done != nil && !r.state.CompareAndSwap(waiting, claimed)
		if !drop && r.reads != nil {
			if ahead == nil {
				ahead = &groupWrites{seq: p.seq}
			}
			r.err = ahead.validate(p.seq, r.reads, group, before)
			drop = r.err != nil
		}
		if drop {
			size -= r.size
			left = slices.Clone(before) // lead still needs the group
		} else if len(before) < i {
			left = append(left, r)
		}
	}
	return left, size
}

// A groupWrites holds the batches of a group that stand before a transaction, in a memtable of their own.
type groupWrites struct {
	mem   *memtable.Memtable
	seq   base.SeqNum // of the last write in it
	added int         // batches
}

// validate returns an error if something of reads was written by what has a number, up to
// last, or by a batch of before. They are the first of a group that stay in it.
func (g *groupWrites) validate(last base.SeqNum, reads Reads, group, before []*request) error {
	// It may ask filters of the application: what goes wrong in them is the transaction's, and not the leader's.
	err := callback.Catch("Filter or RangeFilter", func() error { return reads.Validate(last) })
	if err != nil || len(before) == 0 {
		return err
	}
	if g.mem == nil {
		arena := memtable.Slack
		for _, r := range group {
			arena += r.arena
		}
		g.mem = memtable.New(arena)
	}
	for ; g.added < len(before); g.added++ {
		b := before[g.added].batch
		if b == nil {
			continue
		}
		if err := g.mem.Apply(b.Seal(g.seq + 1)); err != nil {
			return err
		}
		g.seq += base.SeqNum(b.Len())
	}
	return reads.ValidateIn(g.mem)
}
