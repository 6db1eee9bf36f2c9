package kv

import "runtime"

// until returns when what another goroutine is about to do is done.
func until(done func() bool) {
	for !done() {
		runtime.Gosched()
	}
}

// untilResumed returns when the store takes writes, and nobody resumes it any more.
func (d *DB) untilResumed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.failure != nil || d.resumer.running {
		d.progress.Wait()
	}
}

// settle returns when the store has done in the background all that follows from what
// was asked of it so far: it has resumed, nothing is left to flush or to compact, and
// obsolete files are removed, except those that readers need. Calls that return, Open
// and Flush among them, leave such work behind.
func (d *DB) settle() {
	d.mu.Lock()
	for d.resumer.running {
		d.progress.Wait()
	}
	d.mu.Unlock()
	d.waitForBackground()
	d.cleaner.wait()
}
