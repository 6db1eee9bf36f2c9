package remote

import (
	"context"
	"time"
)

// Start returns the first slot that is needed if all logs with numbers below oldest are not. A manifest records both,
// for Recover. It sends no request.
func (l *Logs) Start(oldest uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	start := l.w.Next()
	for log, first := range l.first {
		if log >= oldest {
			start = min(start, first)
		}
	}
	return start
}

// Trim deletes what stands before a slot that Start has returned, once a durable manifest records it, and returns how
// many objects; see [Sequence.Trim].
func (l *Logs) Trim(ctx context.Context, start uint64, olderThan time.Time) (int, error) {
	deleted, err := l.w.s.Trim(ctx, start, olderThan)
	l.mu.Lock()
	defer l.mu.Unlock()
	for log, first := range l.first {
		if first < start {
			delete(l.first, log)
		}
	}
	return deleted, err
}
