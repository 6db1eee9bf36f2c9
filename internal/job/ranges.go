package job

import (
	"context"
	"sync"

	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
)

// The merge of a compaction, or of a flush, is cut into ranges of user keys. The goroutine of the job takes one after
// the other, and threads that have nothing else to do help: each with one range, so that compactions which become due
// do not wait for long. The first failure ends all of them, and one edit of the manifest installs what all have
// written.

// A keyRange is one range of a merge, and what has been written of it.
type keyRange struct {
	span   version.Span // a nil Lo: from the first key
	pass   *iterator.Compaction
	out    *tablemeta.Writer
	tables []manifest.Table
}

// A sharedMerge is the ranges of a merge while threads take them.
type sharedMerge struct {
	env        *Env
	maxThreads int // that are busy before this merge hires no more
	ranges     []keyRange
	merge      func(ctx context.Context, r *keyRange) error
	cancel     context.CancelFunc

	group sync.WaitGroup // of helpers
	mu    sync.Mutex
	next  int
	err   error // the first
}

// mergeRanges calls merge for all ranges, several at once where threads are free, and returns what they have written,
// of which the names are durable. After the first error no other range is begun, the context of those that run ends,
// and what was written is removed.
func (e *Env) mergeRanges(ctx context.Context, maxThreads int, spans []version.Span,
	merge func(ctx context.Context, r *keyRange) error) (out Output, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &sharedMerge{env: e, maxThreads: maxThreads, ranges: make([]keyRange, len(spans)), merge: merge,
		cancel: cancel}
	for i, span := range spans {
		s.ranges[i].span = span
	}
	for s.hire(ctx); s.one(ctx); s.hire(ctx) {
	}
	s.group.Wait()
	for i := range s.ranges {
		out.add(&s.ranges[i])
	}
	if s.err == nil && len(out.Tables) > 0 {
		s.err = e.FS.SyncDir(e.Dir)
	}
	if s.err == nil {
		return out, nil
	}
	for _, r := range s.ranges {
		if r.out != nil {
			r.out.Abort()
		}
	}
	return Output{Stats: out.Stats}, s.err
}

// one merges the next range, and reports whether there was one.
func (s *sharedMerge) one(ctx context.Context) bool {
	s.mu.Lock()
	i := s.next
	s.next++
	s.mu.Unlock()
	if i >= len(s.ranges) {
		return false
	}
	err := callback.Do(callback.OfOptions, func() error { return s.merge(ctx, &s.ranges[i]) })
	if err != nil {
		s.mu.Lock()
		if s.err == nil {
			s.err = err
		}
		s.next = len(s.ranges)
		s.mu.Unlock()
		s.cancel()
	}
	return true
}

func (s *sharedMerge) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ranges) - s.next
}

// hire lets threads that are free help, while ranges are left in addition to the caller's next one.
func (s *sharedMerge) hire(ctx context.Context) {
	threads := &s.env.Threads
	for left := s.left(); left > 1 && threads.Hire(s.maxThreads); left-- {
		s.group.Go(func() {
			for again := true; again; again = again && s.left() > 0 && threads.Hire(s.maxThreads) {
				again = s.one(ctx)
				threads.Dismiss() // what is due comes first
			}
		})
	}
}
