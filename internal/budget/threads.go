package budget

import "slices"

// How the stores of a budget take turns to compact. A store that finds no thread free queues up. A store that is done
// gives its thread to the first in the queue. So a store with much to compact keeps the others waiting no longer than
// its running compactions take. No compaction needs a second thread to end.

// A Request asks for a thread: that of a store's automatic compactions, or of a call of Compact.
type Request struct {
	share   *Share
	queued  bool // guarded by the budget's mutex, as granted is
	granted bool // a thread is set aside
}

// Acquire takes a thread. If none is free, it queues up and reports false; the store is woken when there is one. A
// nil Request is that of a store without a budget.
func (w *Request) Acquire() bool {
	if w == nil {
		return true
	}
	b := w.share.b
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case w.granted:
		w.granted = false
		return true
	case w.queued:
		return false
	case len(b.queue) == 0 && b.busy < b.threads:
		b.busy++
		return true
	}
	w.queued = true
	b.queue = append(b.queue, w)
	return false
}

func (w *Request) state() (queued, granted bool) {
	if w == nil {
		return false, false
	}
	b := w.share.b
	b.mu.Lock()
	defer b.mu.Unlock()
	return w.queued, w.granted
}

// Pending reports whether w is in the queue, or was granted a thread.
func (w *Request) Pending() bool {
	queued, granted := w.state()
	return queued || granted
}

// Queued reports whether w is in the queue, and there is nothing for it yet.
func (w *Request) Queued() bool {
	queued, _ := w.state()
	return queued
}

// Cancel leaves the queue, and gives a thread that was set aside to the next.
func (w *Request) Cancel() {
	if w == nil {
		return
	}
	b := w.share.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.queued {
		w.queued = false
		b.queue = slices.DeleteFunc(b.queue, func(other *Request) bool { return other == w })
	}
	w.pass()
}

// Decline gives a thread that was set aside to the next.
func (w *Request) Decline() {
	w.share.b.mu.Lock()
	defer w.share.b.mu.Unlock()
	w.pass()
}

// pass is Decline for a caller that holds the budget's mutex.
func (w *Request) pass() {
	if w.granted {
		w.granted = false
		w.share.b.passThread()
	}
}

// TryThread takes a thread if one is free and the queue is empty.
func (s *Share) TryThread() bool {
	if s == nil {
		return true
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if len(s.b.queue) > 0 || s.b.busy >= s.b.threads {
		return false
	}
	s.b.busy++
	return true
}

// Quiet reports whether no store of the budget compacts, or waits to. It is true without a budget.
func (s *Share) Quiet() bool {
	if s == nil {
		return true
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return s.b.busy == 0 && len(s.b.queue) == 0
}

// ReleaseThread gives a thread back.
func (s *Share) ReleaseThread() {
	if s != nil {
		s.b.mu.Lock()
		s.b.passThread()
		s.b.mu.Unlock()
	}
}

// passThread gives a thread to the first in the queue. The caller holds b.mu.
func (b *Memory) passThread() {
	if len(b.queue) == 0 {
		b.busy--
		return
	}
	w := b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1)
	w.queued, w.granted = false, true
	go w.share.Wake() // the caller may hold the mutex of a store
}

// NewRequest returns a place in the queue for a call of Compact; nil without a budget.
func (s *Share) NewRequest() *Request {
	if s == nil {
		return nil
	}
	return &Request{share: s}
}
