package commit

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Batch is a record to commit.
type Batch struct {
	batchrepr.Writer
	Arena int // the most that it takes in a memtable, in bytes

	// Held is what its entries refer to. It is the memtable's, and nil here, from when the batch may be in the log.
	Held []Held
}

// A Held is something for a memtable to hold, and its size.
type Held struct {
	memtable.Held
	Bytes int64
}

// A Level says what must be done with a batch before its commit returns.
type Level uint8

// The levels, the strongest first.
const (
	Synced   Level = iota // on stable storage
	Written               // with the operating system
	Buffered              // in the memory of the process
)

// A Store is what a pipeline needs of the store that it is part of. The leader calls its
// functions; a syncing writer calls FlushedTo and Fail too.
type Store struct {
	Visible    *atomic.Uint64 // the number of the last write that readers see; the pipeline's to raise
	GroupBytes int            // bounds a group, in addition to the pipeline's own bound
	OwnTable   int            // a batch that takes as much in a memtable gets one of its own; 0: none does
	Logger     *slog.Logger

	// Combine combines operands. Nil: they stay as they are.
	Combine memtable.Combine

	// MakeRoom returns the memtable to write to, with arena bytes reserved for size bytes
	// of batches; if own is not nil, an empty one that is made for that order. It may wait, and
	// rotate the log. If ctx ends, it returns base.ErrContextEnded.
	MakeRoom func(ctx context.Context, arena, size int, own *memtable.Order) (*memtable.Memtable, error)

	// Filled is called when the memtable that was made for one batch has it, and takes no more writes.
	Filled func()

	// Enable makes it durable that the store may hold entries of these kinds.
	Enable func(manifest.Features) error

	// Values, unless nil, writes large values to where records have handles of them.
	Values Values

	// FlushedTo returns the number of the first log with writes that are in no table.
	FlushedTo func() uint64

	// SyncTook, unless nil, is told how long each sync of the logs took, those that failed included.
	SyncTook func(time.Duration)

	// Fail gets what failed, and returns the error for writers. All logs are broken then and must
	// be replaced. If it is fatal, the store never takes writes again.
	Fail func(what string, fatal bool, err error) error
}

// Values are where large values of batches are written when they are committed. The leader calls its methods; each
// writer calls Has.
type Values interface {
	// Has reports whether a batch has values that go there.
	Has(b *batchrepr.Writer) bool
	// Put writes the large values of a batch; first is the number of its first write. It fills into with the writes,
	// with handles in place of the values. They are for a log, and for a memtable. After an error the log is broken.
	Put(b *batchrepr.Writer, first base.SeqNum, log *wal.Writer, mem *memtable.Memtable,
		into *batchrepr.Writer) error
	// Flush hands all that Put wrote to the operating system, before the log's records are.
	Flush() error
}

// A Pipeline orders the commits of one store. All methods are safe for concurrent use but
// those that are the leader's: these are called by Store's functions and within Exclusive.
type Pipeline struct {
	Counters
	Watch Watch // for writes to become visible

	store Store

	mu      sync.Mutex
	waiting []*request // none if there is no leader
	leading bool
	crowded bool // the last group had several writers, and none of them wanted a sync
	gate    gate
	syncs   syncs

	// requests are those that are not in use. Stores do not share them: a channel of a
	// store that was opened in a bubble of testing/synctest is of no use outside.
	requests sync.Pool

	logs    logs
	durable atomic.Uint64 // the last write that a sync of a group made durable

	// The leader's.
	closed   bool
	seq      base.SeqNum // the last one given out
	features manifest.Features
	soon     *time.Timer // flushes what Buffered commits left in the log's buffer
	armed    bool        // soon will fire
	group    []*request
	readers  []batchrepr.Reader // of its batches; its memory is used again
}

// Counters count what was committed.
type Counters struct {
	Groups, Writes, Bytes, Syncs atomic.Uint64
}

const (
	// maxGroupBytes bounds a group, so that the first of its writers does not wait for much data of others.
	maxGroupBytes = 4 << 20
	// ParallelBytes is the size of a group from which its writers apply their own batches: below it,
	// waking them costs more than it gains.
	ParallelBytes = 32 << 10
	// bufferedDelay is how long a Buffered write may stay in the process.
	bufferedDelay = 50 * time.Millisecond
	// bufferedBytes is how many bytes of Buffered writes may stay in the process.
	bufferedBytes = 256 << 10
	// maxRetainedHandles bounds the memory that a request keeps for batches with handles, in bytes.
	maxRetainedHandles = 64 << 10
)

// Attach makes p the pipeline of a store, before its first use.
func (p *Pipeline) Attach(s Store) {
	p.store = s
	p.syncs.ended.L = &p.mu
}

// Start lets p write: the next write is the one after seq, goes to log, and may be of the
// kinds that the features enable. The pipeline takes ownership of the log.
func (p *Pipeline) Start(seq base.SeqNum, log *wal.Writer, enabled manifest.Features) {
	p.seq, p.logs.current, p.features = seq, log, enabled
}

// Commit makes a batch durable to the level asked for, and visible. If reads is not nil and was written before the
// batch's turn, Commit returns the error of reads. An error that matches ctx.Err() says that ctx ended before the batch
// had its place in the log: nothing was written.
func (p *Pipeline) Commit(ctx context.Context, b *Batch, reads Reads, level Level) error {
	r := p.newRequest(ctx.Done())
	r.batch, r.reads, r.level, r.err, r.syncs = b, reads, level, nil, false
	r.size, r.arena, r.ctx = b.Size(), b.Arena, ctx
	if n := p.store.OwnTable; n > 0 && b.Arena >= n && (p.store.Values == nil || !p.store.Values.Has(&b.Writer)) {
		r.own, _ = memtable.Sort(b.Seal(0)) // here, where no other writer waits for it
	}
	return p.submitAndReuse(r)
}

// SyncVisible makes all writes durable that are visible at the time of the call, and those before
// them. It shares its sync with waiting writers, and needs none if another made them durable, or
// they are in tables. ctx has the same effect as for Commit. An error of the disk matches
// base.ErrNotDurable, unless it came before the sync: the writes stay visible.
func (p *Pipeline) SyncVisible(ctx context.Context) error {
	if p.store.Visible.Load() <= p.durable.Load() {
		return nil
	}
	r := p.newRequest(ctx.Done())
	r.batch, r.reads, r.level, r.err, r.syncs = nil, nil, Synced, nil, false
	r.size, r.arena, r.ctx = 0, 0, ctx
	return p.submitAndReuse(r)
}

// Durable reports whether a sync of a group has made all writes up to seq durable.
func (p *Pipeline) Durable(seq base.SeqNum) bool { return uint64(seq) <= p.durable.Load() }

// submitAndReuse is submit for a request of newRequest.
func (p *Pipeline) submitAndReuse(r *request) error {
	err := p.submit(r)
	if r.done == nil {
		r.batch, r.reads, r.mem, r.applied, r.ctx, r.own = nil, nil, nil, nil, nil, nil
		if r.withHandles != nil && r.withHandles.Cap() > maxRetainedHandles {
			r.withHandles = nil
		}
		p.requests.Put(r)
	}
	return err
}

// Exclusive runs f in its turn, while no commit and no sync is under way: whatever has a number is visible, or never
// will be. It waits for its turn no longer than ctx lasts. After Close it returns base.ErrClosed.
func (p *Pipeline) Exclusive(ctx context.Context, f func() error) error {
	return p.submit(&request{run: f, ctx: ctx, done: ctx.Done(), signal: make(chan signal, 1)})
}

// submit queues a request and returns when it is done.
func (p *Pipeline) submit(r *request) error {
	p.mu.Lock()
	lead, taken := false, false
	switch {
	case r.gated():
		lead = p.arrive(r)
	case p.leading || p.crowded:
		p.waiting = append(p.waiting, r)
		lead, p.leading = !p.leading, true
	default: // nothing waits: the group is taken while the lock is held
		p.leading, lead, taken = true, true, true
		p.group = append(p.group[:0], r)
	}
	p.mu.Unlock()
	for {
		if lead && p.lead(r, taken) {
			return r.err
		}
		lead, taken = false, false
		switch p.wait(r) {
		case signalDone:
			return r.err
		case signalAbandoned:
			return base.ContextError(r.ctx, "waited for other writers")
		case signalApply:
			r.err = r.mem.Apply(r.batch.Record())
			r.applied.Done()
		case signalLead:
			lead = true
		case signalGather:
			p.mu.Lock()
			lead = p.enter()
			p.mu.Unlock()
		case signalSync:
			p.sync(r)
			return r.err
		}
	}
}

// lead sees to one group, of which the caller's request r is the first, and passes leadership on. If some of the group
// want a sync, it comes after that: others lead meanwhile. If taken is set, the group is in p.group already, and r is
// all of it. It reports whether r is done.
func (p *Pipeline) lead(r *request, taken bool) (done bool) {
	group, size := p.group, r.size
	if !taken {
		group, size = p.takeGroup(min(maxGroupBytes, p.store.GroupBytes))
	}
	err := p.work(r, group, size)
	if err != nil && errors.Is(err, base.ErrContextEnded) {
		p.putBack(group[1:])
		group, err = group[:1], base.ContextError(r.ctx, "the write waited for a flush or compaction")
	}
	done, syncer := p.conclude(r, group, err)
	switch syncer {
	case nil:
	case r:
		p.sync(r)
		return true
	default:
		syncer.signal <- signalSync
	}
	return done
}

// work does what a group is for, of which the leader's request r is the first. If it does not return, since a
// function of the application panics or calls runtime.Goexit, the others of the group and those that wait must not
// wait for ever. The store takes no writes then: some of the group may be in the log, and it is not known what else
// was left undone.
func (p *Pipeline) work(r *request, group []*request, size int) error {
	returned := false
	defer func() {
		if !returned {
			p.conclude(r, group, p.store.Fail("a commit", true, errLeft))
		}
	}()
	var err error
	switch {
	case p.closed:
		err = base.ErrClosed
	case r.run != nil:
		err = r.run()
	default:
		err = p.commitGroup(group, size)
	}
	returned = true
	return err
}

var errLeft = errors.New("a function of the application panicked, or called runtime.Goexit")

// conclude gives the requests of a group their outcome, and passes leadership on. It reports whether the leader's
// request r is done, and returns the request that must sync for the group; nil: none.
func (p *Pipeline) conclude(r *request, group []*request, err error) (done bool, syncer *request) {
	p.mu.Lock()
	group, syncer = p.settle(group, err)
	done = len(group) > 0 && group[0] == r
	if n := len(group); n > 1 || n == 1 && !done {
		p.mu.Unlock()
		for _, o := range group {
			if o != r {
				o.signal <- signalDone
			}
		}
		p.mu.Lock()
	}
	p.passLeadership() // the next leader reuses p.group as soon as it has its turn
	p.mu.Unlock()
	return done, syncer
}

// settle gives the requests of a group their outcome. It returns, in the memory of group, those that are done, and the
// one that must sync for the others; nil if there is none. The caller holds p.mu.
func (p *Pipeline) settle(group []*request, err error) (done []*request, syncer *request) {
	s, left := &p.syncs, 0
	if i := slices.IndexFunc(group, func(r *request) bool { return r.syncs }); i >= 0 {
		syncer, s.running = group[i], true
	}
	done = group[:0]
	for _, r := range group {
		if r.err == nil {
			r.err = err
		}
		switch {
		case r.syncs:
			s.group, s.gated = append(s.group, r), s.gated+1
			continue
		case r.gated():
			left++
		}
		if s.running && r.reads != nil && r.err != nil {
			// A conflicting write may become visible with the sync: a retry that began
			// before would conflict with it again.
			s.group = append(s.group, r)
			continue
		}
		done = append(done, r)
	}
	p.leave(left)
	return done, syncer
}

// takeGroup takes at least one waiting request, and up to maxBytes of them. A function, or a batch with a memtable of
// its own, is a group by itself. If some of the group need a sync, those left that have passed the gate go back to it,
// since they are for the next sync.
func (p *Pipeline) takeGroup(maxBytes int) (group []*request, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crowded { // the others of the last group are about to write again, and share one write call
		p.mu.Unlock()
		runtime.Gosched()
		p.mu.Lock()
	}
	n, synced := 0, false
	for n < len(p.waiting) {
		r := p.waiting[n]
		if n > 0 && (r.alone() || size+r.size > maxBytes) {
			break
		}
		n++
		if r.run != nil {
			break
		}
		size += r.size
		synced = synced || r.gated()
		if r.alone() {
			break
		}
	}
	p.group = append(p.group[:0], p.waiting[:n]...)
	p.crowded = n > 1 && !synced
	rest := copy(p.waiting, p.waiting[n:])
	clear(p.waiting[rest:])
	p.waiting = p.waiting[:rest]
	if synced && rest > 0 {
		p.turnBack()
	}
	return p.group, size
}

// Queue reports whether a writer leads or syncs, and how many requests wait for the next
// group. It is for tests, here and in package kv: they wait until writers wait.
func (p *Pipeline) Queue() (busy bool, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leading || p.gate.shut, len(p.waiting) + len(p.gate.waiting)
}
