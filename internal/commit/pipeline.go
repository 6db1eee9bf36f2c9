package commit

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
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
	Arena int // the most that its points take in a memtable, in bytes
}

// A Level says how far a batch has to get before its commit returns.
type Level uint8

// The levels, the strongest first.
const (
	Synced   Level = iota // on stable storage
	Written               // with the operating system
	Buffered              // in the memory of the process
)

// A Store is what a pipeline asks of the store that it is part of. The leader calls its
// functions.
type Store struct {
	Visible    *atomic.Uint64 // the number of the last write that readers see
	GroupBytes int            // bounds a group, beside a bound of the pipeline's own
	Logger     *slog.Logger

	// MakeRoom returns the memtable to write to, with arena bytes reserved for size bytes
	// of batches. It may wait, and rotate the log. If ctx ends, it returns
	// base.ErrContextEnded.
	MakeRoom func(ctx context.Context, arena, size int) (*memtable.Memtable, error)

	// Enable makes it durable that the store may hold entries of these kinds.
	Enable func(manifest.Features) error

	// FlushedTo returns the number of the first log that has writes which are in no table.
	FlushedTo func() uint64

	// Fail is told what failed, and returns the error that writers get. All logs are broken
	// then and have to be replaced. If it is fatal, the store never takes writes again.
	Fail func(what string, fatal bool, err error) error
}

// A Pipeline orders the commits of one store. All methods are safe for concurrent use but
// those that are the leader's: these are called by Store's functions and within Exclusive.
type Pipeline struct {
	Counters

	store Store

	mu      sync.Mutex
	waiting []*request
	leading bool
	closed  bool

	// requests are those that nobody uses. Stores do not share them: a channel of a
	// store that was opened in a bubble of testing/synctest is of no use outside.
	requests sync.Pool

	// The leader's.
	seq      base.SeqNum // the last one given out
	features manifest.Features
	log      *wal.Writer
	unsynced []*wal.Writer // logs that ended and were not synced: older than log
	soon     *time.Timer   // flushes what Buffered commits left in the log's buffer
	armed    bool          // soon will fire
	group    []*request
}

// Counters count what was committed.
type Counters struct {
	Groups, Writes, Bytes, Syncs atomic.Uint64
}

const (
	// maxGroupBytes bounds a group, so that the first of its writers does not
	// wait for everybody else's data.
	maxGroupBytes = 4 << 20
	// ParallelBytes is the size from which on the writers of a group apply their
	// own batches: below it, waking them costs more than it gains.
	ParallelBytes = 32 << 10
	// bufferedDelay is how long a Buffered write may stay in the process.
	bufferedDelay = 50 * time.Millisecond
	// bufferedBytes is how many bytes of Buffered writes may stay in the process.
	bufferedBytes = 256 << 10
	// maxYields bounds how often a leader gives way before a sync.
	maxYields = 4
)

// Attach makes p the pipeline of a store, before its first use.
func (p *Pipeline) Attach(s Store) { p.store = s }

// Start lets p write: the next write is the one after seq, goes to log, and may be of the
// kinds that the features enable. The pipeline owns the log from now on.
func (p *Pipeline) Start(seq base.SeqNum, log *wal.Writer, enabled manifest.Features) {
	p.seq, p.log, p.features = seq, log, enabled
}

// Commit makes a batch durable to the level asked for, and visible. If reads is not nil
// and was written before the batch's turn, Commit returns the error of reads. An error
// that matches ctx.Err() says that ctx ended before the batch had its place in the log:
// nothing was written.
func (p *Pipeline) Commit(ctx context.Context, b *Batch, reads Reads, level Level) error {
	r := p.newRequest(ctx.Done())
	r.batch, r.reads, r.level, r.err = b, reads, level, nil
	r.size, r.arena, r.ctx = b.Size(), b.Arena, ctx
	err := p.submit(r)
	if r.done == nil {
		r.batch, r.reads, r.mem, r.applied, r.ctx = nil, nil, nil, nil, nil
		p.requests.Put(r)
	}
	return err
}

// Exclusive runs f between two groups, in its turn, for which it waits no longer than ctx
// lasts. After Close it returns base.ErrClosed.
func (p *Pipeline) Exclusive(ctx context.Context, f func() error) error {
	return p.submit(&request{run: f, ctx: ctx, done: ctx.Done(), signal: make(chan signal, 1)})
}

// submit queues a request and returns when it is done.
func (p *Pipeline) submit(r *request) error {
	p.mu.Lock()
	p.waiting = append(p.waiting, r)
	lead := !p.leading
	p.leading = true
	p.mu.Unlock()
	for !lead {
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
		}
	}
	p.lead()
	return r.err
}

// lead sees to one group, of which the caller's request is the first, and passes
// leadership on.
func (p *Pipeline) lead() {
	p.waitForReturn()
	group, size := p.takeGroup(min(maxGroupBytes, p.store.GroupBytes))
	var err error
	switch {
	case p.closed:
		err = base.ErrClosed
	case group[0].run != nil:
		err = group[0].run()
	default:
		err = p.commitGroup(group, size)
	}
	if err != nil && errors.Is(err, base.ErrContextEnded) {
		p.putBack(group[1:])
		group, err = group[:1], base.ContextError(group[0].ctx, "the write waited for a flush or compaction")
	}
	for _, r := range group {
		if r.err == nil {
			r.err = err
		}
	}
	// The next leader reuses p.group as soon as it has its turn.
	for _, r := range group[1:] {
		r.signal <- signalDone
	}
	p.mu.Lock()
	p.passLeadership()
	p.mu.Unlock()
}

// waitForReturn gives the writers of the last group a chance to be in the next one, if
// that is going to sync. They wake up when their group is done, and mostly come back with
// their next write. A leader that took its group at once would leave without them: sixteen
// writers would then sync in turns of eight, and pay for twice as many syncs as they need.
// Giving up the processor a few times costs a microsecond if nobody comes, against the
// hundred or more of a sync. It never waits for an event.
func (p *Pipeline) waitForReturn() {
	if len(p.group) <= 1 {
		return // a lone writer leads already
	}
	for range maxYields {
		p.mu.Lock()
		first := p.waiting[0]
		complete := len(p.waiting) >= len(p.group)
		p.mu.Unlock()
		if complete || first.run != nil || first.level != Synced {
			return
		}
		runtime.Gosched()
	}
}

// takeGroup takes waiting requests of up to maxBytes: at least one, and a function on its
// own.
func (p *Pipeline) takeGroup(maxBytes int) (group []*request, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.waiting) {
		r := p.waiting[n]
		if r.run != nil && n > 0 || n > 0 && size+r.size > maxBytes {
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

// Queue reports whether somebody leads, and how many requests wait for the next group.
func (p *Pipeline) Queue() (leading bool, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leading, len(p.waiting)
}
