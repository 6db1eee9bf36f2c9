package kv

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// The commit pipeline turns concurrent commits into groups. The first writer to
// arrive leads: it takes everybody who is waiting, writes one WAL record per
// batch with one write call, syncs once if anybody asked for it, sees to it that
// all batches are in the memtable, and makes them visible together. Who arrives
// meanwhile waits for the next group. So the cost of a sync is shared by all
// writers that wait for it, and a lone writer pays for no hand-over.
type commitPipeline struct {
	mu      sync.Mutex
	waiting []*commitRequest
	leading bool
	closed  bool

	// requests are those that nobody uses. Stores do not share them: a channel of a
	// store that was opened in a bubble of testing/synctest is of no use outside.
	requests sync.Pool

	// Touched by the leader alone.
	seq      base.SeqNum // the last one given out
	features manifest.Features
	log      *logFile
	unsynced []*logFile  // logs that ended and were not synced: older than log
	soon     *time.Timer // flushes what Async left in the log's buffer
	armed    bool        // soon will fire
	group    []*commitRequest
	slowDebt time.Duration // how long writes should have slept
}

// A commitRequest is a batch that waits to be committed, or a function that
// waits to run between groups.
type commitRequest struct {
	batch   *Batch
	reads   *readSet // of a transaction: what must not have been written meanwhile
	arena   int      // what the batch takes in a memtable, in bytes
	size    int      // of the batch, in bytes
	run     func() error
	ctx     context.Context
	done    <-chan struct{} // of ctx; nil: it never ends
	place   place           // if done is not nil
	level   durability
	err     error
	turn    chan turn
	applied *sync.WaitGroup // when its turn is turnApply
	mem     *memTable
}

// turn is what a waiting writer is told to do.
type turn uint8

const (
	turnDone   turn = iota // the batch is committed, or failed
	turnLead               // lead the next group
	turnApply              // put the batch into the memtable, and wait on
	turnGiveUp             // the context has ended first: nothing is written
)

const (
	// maxGroupBytes bounds a group, so that the first of its writers does not
	// wait for everybody else's data. A quarter of a memtable bounds it too.
	maxGroupBytes = 4 << 20
	// parallelBytes is the size from which on the writers of a group apply their
	// own batches: below it, waking them costs more than it gains.
	parallelBytes = 32 << 10
	// asyncDelay is how long an Async write may stay in the process.
	asyncDelay = 50 * time.Millisecond
	// asyncBuffer is how many bytes of Async writes may stay in the process.
	asyncBuffer = 256 << 10
)

func (p *commitPipeline) init(seq base.SeqNum, log *logFile) {
	p.seq, p.log = seq, log
}

// commit makes a batch durable to the level asked for, and visible. If reads is
// not nil, it fails with ErrConflict if something of it was written before the
// batch's turn.
func (d *DB) commit(ctx context.Context, b *Batch, reads *readSet, o *WriteOptions) error {
	if err := d.writable(); err != nil {
		return err
	}
	if b.Empty() {
		return nil
	}
	r := d.commits.request(ctx.Done())
	r.batch, r.reads, r.level, r.err = b, reads, o.level(), nil
	r.arena, r.size, r.ctx = b.arena, b.repr.Size(), ctx
	err := d.commits.submit(d, r)
	if r.done == nil {
		r.batch, r.reads, r.mem, r.applied, r.ctx = nil, nil, nil, nil, nil
		d.commits.requests.Put(r)
	}
	return err
}

// request returns a request to fill in: one that was used before, or a new one if it can
// be given up, since a leader may hold on to it then.
func (p *commitPipeline) request(done <-chan struct{}) *commitRequest {
	if done == nil {
		if r, ok := p.requests.Get().(*commitRequest); ok {
			return r
		}
	}
	return &commitRequest{done: done, turn: make(chan turn, 1)}
}

// exclusive runs f between two groups, in its turn.
func (p *commitPipeline) exclusive(d *DB, f func() error) error {
	return p.exclusiveContext(context.Background(), d, f)
}

// exclusiveContext is exclusive for a caller who waits for its turn no longer than
// ctx lasts.
func (p *commitPipeline) exclusiveContext(ctx context.Context, d *DB, f func() error) error {
	return p.submit(d, &commitRequest{run: f, ctx: ctx, done: ctx.Done(), turn: make(chan turn, 1)})
}

// submit queues a request and returns when it is done.
func (p *commitPipeline) submit(d *DB, r *commitRequest) error {
	p.mu.Lock()
	p.waiting = append(p.waiting, r)
	lead := !p.leading
	p.leading = true
	p.mu.Unlock()
	for !lead {
		switch p.next(r) {
		case turnDone:
			return r.err
		case turnGiveUp:
			return givenUp(r.ctx, "waited for other writers")
		case turnApply:
			r.err = r.mem.Apply(r.batch.repr.Record())
			r.applied.Done()
		case turnLead:
			lead = true
		}
	}
	p.lead(d)
	return r.err
}

// lead sees to one group, of which the caller's request is the first, and hands
// on.
func (p *commitPipeline) lead(d *DB) {
	p.waitForReturn()
	group, size := p.takeGroup(min(maxGroupBytes, int(d.opts.MemtableSize/4)))
	var err error
	switch {
	case p.closed:
		err = ErrClosed
	case group[0].run != nil:
		err = group[0].run()
	default:
		err = p.commitGroup(d, group, size)
	}
	if err != nil && errors.Is(err, errGivenUp) {
		p.putBack(group[1:])
		group, err = group[:1], givenUp(group[0].ctx, "the write waited for a flush or compaction")
	}
	for _, r := range group {
		if r.err == nil {
			r.err = err
		}
	}
	// The next leader reuses p.group as soon as it has its turn.
	for _, r := range group[1:] {
		r.turn <- turnDone
	}
	p.mu.Lock()
	p.handOn()
	p.mu.Unlock()
}

// takeGroup takes waiting requests of up to most bytes: at least one, and a
// function on its own.
func (p *commitPipeline) takeGroup(most int) (group []*commitRequest, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.waiting) {
		r := p.waiting[n]
		if r.run != nil && n > 0 || n > 0 && size+r.size > most {
			break
		}
		n++
		if r.run != nil {
			break
		}
		size += r.size
	}
	p.group = append(p.group[:0], p.waiting[:n]...)
	rest := copy(p.waiting, p.waiting[n:])
	clear(p.waiting[rest:])
	p.waiting = p.waiting[:rest]
	return p.group, size
}

// commitGroup writes a group to the log and to the memtable.
func (p *commitPipeline) commitGroup(d *DB, group []*commitRequest, size int) error {
	arena := 0
	for _, r := range group {
		arena += r.arena
	}
	mem, err := d.makeRoom(group[0].ctx, arena, size)
	if err != nil {
		return err
	}
	defer mem.Release(arena)
	// Before this, a batch and its reads may be the owner's again at any time.
	group, size = settle(group, size)
	if group, size = p.refuseConflicts(d, group, size); len(group) == 0 {
		return nil
	}
	level, used := durableLater, manifest.Features(0)
	for _, r := range group {
		used |= r.batch.features
		level = min(level, r.level)
	}
	if used&^p.features != 0 {
		if err := d.enable(used); err != nil {
			return err
		}
	}
	entries := uint64(0)
	for _, r := range group {
		first := p.seq + 1
		p.seq += base.SeqNum(r.batch.Len())
		entries += uint64(r.batch.Len())
		if err := p.log.w.Append(r.batch.repr.Seal(first)); err != nil {
			return p.fail(d, writingLog, err)
		}
	}
	if err := p.writeLog(d, level); err != nil {
		return p.fail(d, writingLog, err)
	}
	if err := applyGroup(mem, group, size); err != nil {
		return d.fail(brokenLog|brokenForGood, "filling a memtable", err)
	}
	d.visible.Store(uint64(p.seq))
	d.counters.commitGroups.Add(1)
	d.counters.writes.Add(entries)
	d.counters.writeBytes.Add(uint64(size))
	return nil
}

// applyGroup puts the batches of a group into the memtable: the leader alone if
// they are small, else every writer its own.
func applyGroup(mem *memTable, group []*commitRequest, size int) error {
	if size >= parallelBytes && len(group) > 1 {
		return applyParallel(mem, group)
	}
	var errs error
	for _, r := range group {
		if err := mem.Apply(r.batch.repr.Record()); err != nil {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}
