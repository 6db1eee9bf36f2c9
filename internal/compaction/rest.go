package compaction

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/siftkv/siftkv/internal/version"
)

// A Rest finds out when a store is idle, and keeps the accounts of what idle jobs may write. The store's mutex guards
// it. Reads change nothing of it: a timer looks at their counters.
type Rest struct {
	After time.Duration // how long nothing was flushed in an idle store; zero or less: no store is idle
	Look  func()        // called by a timer, without the mutex: it calls Note, and begins the jobs that are due then

	timer   *time.Timer
	next    time.Time     // when the timer fires; zero: no timer runs
	wait    time.Duration // between two looks at an idle store
	busy    time.Time     // when a flush or an ingest ran last, as far as is known
	between time.Duration // two flushes, about
	written int64         // bytes of idle jobs, without level 0 of those that succeeded
	reads   Reads         // at the last look
	lost    int64         // what reads have cost since the last flush, and no job has written
	idle    *Idle         // for the next choice of a job
	cancel  func()        // ends the idle job that runs, or did
}

const (
	maxBetween   = time.Minute      // longer times between two flushes count as this
	maxWait      = 10 * time.Minute // between two looks
	pausePerByte = 4                // nanoseconds after an idle job, about half of what it took
)

// Flushing notes that a flush or an ingest begins in a store that had none.
func (r *Rest) Flushing(now time.Time) {
	r.between = (3*r.between + min(now.Sub(r.busy), maxBetween)) / 4
	r.Busy(now)
}

// Busy notes that a flush or an ingest runs, or has just ended. It stops an idle job: jobs that the flush makes due may
// need the same tables.
func (r *Rest) Busy(now time.Time) {
	r.busy, r.next, r.wait, r.lost, r.idle = now, time.Time{}, 0, 0, nil
	r.Stop()
}

// Stop stops an idle job.
func (r *Rest) Stop() {
	if r.cancel != nil {
		r.cancel()
	}
}

// until returns the time from which the store is idle.
func (r *Rest) until() time.Time { return r.busy.Add(max(r.After, 4*r.between)) }

// Opened notes that a store with a version was opened. Nothing was paid yet for what is in its level 0.
func (r *Rest) Opened(v *version.Version, now time.Time) {
	r.busy, r.written = now, -v.Levels[0].Bytes
}

// Note takes note of the bytes that were flushed and ingested so far, of what reads did so far, and of the room on the
// disk; 0: no job may begin. If the store is idle, the next choice of a job knows it.
func (r *Rest) Note(v *version.Version, now time.Time, flushed int64, reads Reads, free int64) {
	if r.wait > 0 { // else some of it was before the flush
		r.lost += reads.worth(&r.reads)
	}
	r.reads, r.next = reads, time.Time{}
	if now.Before(r.until()) {
		return
	}
	r.wait = max(r.wait, min(max(r.After, time.Millisecond), maxWait))
	if free == 0 {
		return
	}
	flushed += flushed / 8                                // neighbouring pieces both rewrite the file between them
	r.written = max(r.written, flushed-tableBytes(v)*9/8) // of a store that never rests too
	r.wait = min(2*r.wait, maxWait)
	r.idle = &Idle{Flushed: flushed - r.written, Lost: r.lost, Free: free}
}

// Take returns what the next choice of a job knows; nil: the store is not idle.
func (r *Rest) Take() (idle *Idle) {
	idle, r.idle = r.idle, nil
	return idle
}

// Schedule has the store looked at when it is idle, if it may have something to merge then. It is called when nothing
// else is due. While jobs run nothing is scheduled: it is when they end.
func (r *Rest) Schedule(v *version.Version, now time.Time, busyThreads int) {
	if r.After <= 0 || busyThreads > 0 || len(v.Runs) < 2 || !r.next.IsZero() {
		return
	}
	wait := min(max(r.until().Sub(now), r.wait), 100*maxWait) // no sum overflows
	wait += rand.N(wait/4 + 1)                                // not all stores of a process at once
	r.next = now.Add(wait)
	restart(&r.timer, wait, r.Look)
}

// Begin returns the context of a job that begins. That of an idle job ends when a flush begins.
func (r *Rest) Begin(j *Job) (ctx context.Context) {
	if j.Reason != ReasonIdle {
		return context.Background()
	}
	r.written, r.lost = r.written+version.SizeOf(j.Tables()), max(r.lost-j.price(), 0)
	r.wait = maxWait // less if it succeeds
	r.Stop()
	ctx, r.cancel = context.WithCancel(context.Background())
	return ctx
}
