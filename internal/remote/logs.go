package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/vfs"
)

// LogOptions of Logs. The zero value has the defaults.
type LogOptions struct {
	// MaxBuffered is how many unsynced bytes begin a put by themselves. Default: 8 MiB.
	MaxBuffered int

	// Interval is how long unsynced bytes wait for a put. Default: 100 ms; less than 0: until they are synced, or too
	// many.
	Interval time.Duration

	// Patience is how long a put is tried, and what a request may take. Default: 1 minute.
	Patience time.Duration

	Edits filelist.EditLimits
}

func (o LogOptions) withDefaults() LogOptions {
	if o.MaxBuffered <= 0 {
		o.MaxBuffered = 8 << 20
	}
	if o.Interval == 0 {
		o.Interval = 100 * time.Millisecond
	}
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	o.Edits = o.Edits.WithDefaults()
	return o
}

// stopWriting is how many times MaxBuffered may wait for a put before Write waits too.
const stopWriting = 4

// Logs are a store's log files in a sequence. Bytes are put in the order in which they were written, across files. So
// what survives is all that was written before some moment. One put is under way at a time; calls of Sync meanwhile
// share the next. It is safe for concurrent use.
//
// Lists of files go the same way, and take along what is buffered. So the newest list and the bytes of logs behind it
// are what was written before some moment, too.
//
// A put is one PUT (see [sequence.Writer.Put]). Up to eight times MaxBuffered bytes are in memory, and those encoded.
type Logs struct {
	w         *sequence.Writer
	opts      LogOptions
	ctx       context.Context
	cancel    context.CancelFunc
	published func(filelist.Chain) // is told of each list that is durable; the lock is held
	long      func(log uint64)     // is told of a log that has many entries; the lock is held
	whole     atomic.Bool          // lists are put whole

	mu       sync.Mutex
	changed  *sync.Cond // a put has ended
	files    map[*logFile]struct{}
	first    map[uint64]uint64 // for each log in the sequence, a slot with nothing of it before
	buffer   []filelist.Chunk
	buffered int   // bytes in it
	written  int64 // bytes ever
	durable  int64 // of these, that are put, or were dropped
	putting  bool
	inLine   int            // publications that wait for the next put
	due      listMaker      // what the next put takes along; nil: nothing
	lists    uint64         // the slot of the newest list of files
	chain    filelist.Chain // that list, if it is this writer's
	perhaps  filelist.Chain // with a list that may be there, as a put of it failed; empty: none did
	reported uint64         // the slot at which a long log was reported last
	waking   bool           // a put in the background is about to begin
	timer    *time.Timer
	failures int
	failure  error // the last
	untold   error // of a failure that no open file could tell
	closed   bool
}

// newLogs returns the logs that w writes, after those that were recovered. All puts end with ctx.
func newLogs(ctx context.Context, w *sequence.Writer, st *filelist.State, opts LogOptions) *Logs {
	l := &Logs{w: w, opts: opts.withDefaults(), first: st.First, lists: st.Slot, files: map[*logFile]struct{}{},
		published: func(filelist.Chain) {}, long: func(uint64) {}}
	l.changed = sync.NewCond(&l.mu)
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// Create returns a new log file. Its number is higher than those of all before. An error says that a writer has taken
// over; or that bytes are lost of files that were closed without Sync, and is then returned once.
//
// Close of the file leaves what was not synced to later puts. After a failed put, all files that are open are broken.
// The next that is created is not: but what the broken ones had not put before is lost, unless the put that failed was
// performed. What is recovered of each is always its first bytes.
func (l *Logs) Create(number uint64) (vfs.WriteFile, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.first[number]; there {
		return nil, fmt.Errorf("siftkv: create log %d: %w", number, fs.ErrExist)
	}
	err := l.untold
	l.untold = nil
	if errors.Is(l.failure, base.ErrFenced) {
		err = l.failure
	}
	if l.closed {
		err = base.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("siftkv: create log %d: %w", number, err)
	}
	f := &logFile{l: l, number: number}
	l.files[f] = struct{}{}
	return f, nil
}

// Writer returns the writer of the entries.
func (l *Logs) Writer() *sequence.Writer { return l.w }

// Flush waits until all that was written before is put. Its error says that a put has failed.
func (l *Logs) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	want, failures := l.written, l.failures
	for l.durable < want && l.failures == failures {
		l.step()
	}
	if l.failures != failures {
		return l.failure
	}
	return l.untold
}

// Close drops what is not put (see Flush), breaks all files, and cancels a put under way.
func (l *Logs) Close() error {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.putting {
		l.changed.Wait()
	}
	if !l.closed {
		l.closed = true
		if l.timer != nil {
			l.timer.Stop() // it holds what the store had in memory
		}
		l.fail(base.ErrClosed)
		l.changed.Broadcast()
	}
	return nil
}

// step puts what is buffered, or waits until another put ends. The lock is held.
func (l *Logs) step() {
	if l.putting || l.inLine > 0 {
		l.changed.Wait()
		return
	}
	_, _ = l.put(l.due)
}

// fail breaks all open files, and drops what is buffered. The lock is held.
func (l *Logs) fail(err error) {
	l.failures++
	l.failure = err
	if len(l.files) == 0 {
		l.untold = err
	}
	for f := range l.files {
		f.err = err
	}
	clear(l.files)
	l.buffer, l.buffered, l.durable = nil, 0, l.written
}

// schedule arranges that what is buffered is put soon. The lock is held.
func (l *Logs) schedule() {
	switch {
	case l.closed || l.putting || l.waking || l.buffered == 0:
	case l.buffered >= l.opts.MaxBuffered:
		l.waking = true
		go l.wake()
	case l.opts.Interval > 0 && l.timer == nil:
		l.timer = time.AfterFunc(l.opts.Interval, l.tick)
	}
}

func (l *Logs) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waking = false
	if !l.closed && !l.putting && l.buffered > 0 {
		_, _ = l.put(l.due)
	}
}

func (l *Logs) tick() {
	l.mu.Lock()
	l.timer = nil
	l.mu.Unlock()
	l.wake()
}
