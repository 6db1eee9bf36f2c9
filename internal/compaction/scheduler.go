package compaction

import (
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/version"
)

// A Scheduler knows which jobs run, and when others may begin after some have failed. The store's mutex guards it, as
// it guards the marks of tables: what a job needs must be true of the version that is current when the job begins.
//
// A job that fails has changed nothing: its outputs are removed and its inputs stay. Writes go on, and jobs pause with
// back-off. Only when level 0 is full do writers get the cause as an error, where they would have waited for a job.
// Tables whose bytes are wrong are quarantined until the store is opened again, and jobs go on around them. Tables that
// the disk does not return are quarantined for a while. A failure that says nothing about the file, such as too many
// open files, is waited out.
type Scheduler struct {
	State
	Rest     Rest
	Throttle Throttle // of writers
	Backoff  Backoff
	Change   func(change func()) // makes a change with the mutex held, and begins the jobs that are due then

	Running    int   // jobs
	Background int   // of these, jobs without a caller
	Merges     int   // of all, merges for callers, which may take all of the store
	Helpers    int   // threads that merge a range of a job in addition to its own
	Paused     bool  // no job begins until a timer fires
	Cause      error // of the last failure, until a job succeeds

	wait         time.Duration // of the last pause
	readFailures int           // in a row
	pause        *time.Timer
	expiry       *time.Timer // looks for tables that have mostly expired
}

// Backoff bounds the time between two attempts: it doubles from First up to Max.
type Backoff struct{ First, Max time.Duration }

// After returns the wait that follows a wait.
func (b Backoff) After(d time.Duration) time.Duration { return min(max(2*d, b.First), b.Max) }

// Begin marks the inputs of a job, which must be of the current version, and pins that.
func (s *Scheduler) Begin(j *Job) {
	j.Version.Ref()
	j.pinned = true
	for _, t := range j.Tables() {
		t.Compacting = true
	}
	s.count(j, 1)
	j.reserved = s.Reserve(j.Output, j.Span)
}

// End removes the marks. The job may still pin its version: see Job.Unpin.
func (s *Scheduler) End(j *Job) {
	for _, t := range j.Tables() {
		t.Compacting = false
	}
	s.count(j, -1)
	s.Release(j.reserved)
}

// Unpin releases the version of a job, unless that is done.
func (j *Job) Unpin(release func(v *version.Version)) {
	if j.pinned {
		j.pinned = false
		release(j.Version)
	}
}

// count counts a job that begins, or with n = -1 one that ends.
func (s *Scheduler) count(j *Job, n int) {
	s.Running += n
	switch {
	case !j.Asked:
		s.Background += n
	case !j.Kind.Rules().CollectsBlobs:
		s.Merges += n
	}
}

// BusyThreads returns how many of the threads that compact in the background are taken.
func (s *Scheduler) BusyThreads() int { return s.Background + s.Helpers }

// WakeAfter has Change called after a time.
func (s *Scheduler) WakeAfter(wait time.Duration) {
	restart(&s.expiry, wait, func() { s.Change(func() {}) })
}

// Stop ends pauses and waits for good.
func (s *Scheduler) Stop() {
	for _, t := range []*time.Timer{s.pause, s.expiry, s.Rest.timer} {
		if t != nil {
			t.Stop()
		}
	}
}

// Succeeded notes that a job has worked. It ends the pause of one that failed meanwhile: that may work now. An idle job
// is charged for nothing of level 0, and the next one may begin soon.
func (s *Scheduler) Succeeded(j *Job) {
	s.Paused, s.wait, s.Cause, s.readFailures = false, 0, nil, 0
	if r := &s.Rest; j.Reason == ReasonIdle {
		r.written -= version.SizeOf(j.Inputs[0])
		r.wait = min(r.wait, pausePerByte*time.Duration(version.SizeOf(j.Tables())))
	}
}

// MaxReadFailures is how often in a row jobs may fail to read before the disk's errors count as damage.
const MaxReadFailures = 3

// Retry keeps jobs from beginning for a while, which it returns, since one has failed. It reports whether inputs that
// could not be read count as damaged from now on.
func (s *Scheduler) Retry(cause error, reading bool) (wait time.Duration, damaged bool) {
	s.Cause = cause
	s.readFailures++
	damaged = reading && s.readFailures == MaxReadFailures
	if damaged || !reading {
		s.readFailures = 0
	}
	s.wait, s.Paused = s.Backoff.After(s.wait), true
	restart(&s.pause, s.wait, func() { s.Change(func() { s.Paused = false }) })
	return s.wait, damaged
}

// restart starts a timer, or sets one that is there.
func restart(t **time.Timer, wait time.Duration, f func()) {
	if *t == nil {
		*t = time.AfterFunc(wait, f)
	} else {
		(*t).Reset(wait)
	}
}

// Quarantine keeps tables of a version out of jobs. If it is not for good, that ends after the longest wait between
// two attempts: they may be healthy.
func (s *Scheduler) Quarantine(v *version.Version, tables []*version.Table, forGood bool) {
	s.Quarantined = slices.DeleteFunc(s.Quarantined, func(t *version.Table) bool {
		return !t.Quarantined || !v.Has(t.Num)
	})
	tables = slices.DeleteFunc(slices.Clone(tables), func(t *version.Table) bool { return t.Quarantined })
	s.Quarantined = append(s.Quarantined, tables...)
	for _, t := range tables {
		t.Quarantined = true
	}
	if !forGood {
		s.later(func() {
			for _, t := range tables {
				t.Quarantined = false
			}
		})
	}
}

// later makes a change after the longest wait between two attempts.
func (s *Scheduler) later(change func()) { time.AfterFunc(s.Backoff.Max, func() { s.Change(change) }) }

// SetAside keeps blob GC from a file that could not be read: for good, or for the longest wait between two attempts.
// It reports whether the file was known already.
func (s *Scheduler) SetAside(v *version.Version, num uint64, forGood bool) (known bool) {
	known = s.GC.Exclude(num, forGood)
	s.DropStuck(v)
	if !forGood {
		s.later(func() {
			if !s.GC.Excluded[num] {
				delete(s.GC.Excluded, num)
			}
		})
	}
	return known
}

// Waits reports whether something runs, or is about to, that may change what jobs have to do.
func (s *Scheduler) Waits() bool { return s.Running > 0 || len(s.Wanted) > 0 || s.Paused }
