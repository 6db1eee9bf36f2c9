package kv

import (
	"context"
	"runtime"
	"sync"

	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
)

// The merge of a compaction, or of a flush, is cut into ranges of user keys. Whoever runs it
// takes one after the other, and threads that have nothing else to do help: each with one range,
// so that compactions which become due do not wait for long. The first failure ends all of them,
// and one edit of the manifest installs what all have written.

// A mergedRange is one range of a merge, and what has been written of it.
type mergedRange struct {
	span   version.Span // a nil Lo: from the first key on
	out    *tablemeta.Writer
	tables []manifest.Table
}

// written is the files that a merge has written.
type written struct {
	tables []manifest.Table
	blobs  []manifest.BlobFile // that the tables have values in, and none before had

	relocated uint64 // bytes of records that were copied from other blob files
}

// bytes returns the size of all.
func (w *written) bytes() (n int64) {
	for _, t := range w.tables {
		n += t.Size
	}
	return n + w.blobBytes()
}

// blobBytes returns the size of the blob files.
func (w *written) blobBytes() (n int64) {
	for _, b := range w.blobs {
		n += b.Size
	}
	return n
}

// threads returns how many threads may compact in the background at most.
func (d *DB) threads() int { return min(d.opts.MaxConcurrentCompactions, runtime.GOMAXPROCS(0)) }

// cut returns the ranges of a compaction's merge, in order. They cover all keys.
func (d *DB) cut(c *runningCompaction) ([]mergedRange, error) {
	n := d.opts.compaction().NumRanges(c.Job, d.threads())
	if n < 2 {
		return make([]mergedRange, 1), nil
	}
	parts, err := d.partsOf(c.Tables(), c.PartSize(n))
	if err != nil {
		return nil, err
	}
	return rangesOf(compaction.EvenRanges(parts, n)), nil
}

// rangesOf returns ranges of spans.
func rangesOf(spans []version.Span) []mergedRange {
	ranges := make([]mergedRange, len(spans))
	for i, s := range spans {
		ranges[i].span = s
	}
	return ranges
}

// partsOf divides tables into parts of about size bytes.
func (d *DB) partsOf(tables []*version.Table, size int64) (parts []compaction.Part, err error) {
	for _, t := range tables {
		n := t.Size/max(size, 1) + 1
		r, err := t.Open(&d.tables)
		if err != nil {
			return nil, err
		}
		cuts, err := r.Cuts(int(n - 1))
		if err != nil {
			return nil, err
		}
		if t.Largest != nil {
			cuts = append(cuts, t.Largest)
		}
		for _, end := range cuts {
			parts = append(parts, compaction.Part{End: end, Size: t.Size / n})
		}
	}
	return parts, nil
}

// A sharedMerge is the ranges of a merge while threads take them.
type sharedMerge struct {
	d      *DB
	most   int // threads that are busy before this merge hires no more
	ranges []mergedRange
	merge  func(ctx context.Context, r *mergedRange) error
	cancel context.CancelFunc

	group sync.WaitGroup // of helpers
	mu    sync.Mutex
	next  int
	err   error // the first
}

// mergeRanges calls merge for all ranges, several at once where threads are free, and returns
// what they have written, of which the names are durable. After the first error no other range is begun, the
// context of those that run ends, and what was written is removed.
func (d *DB) mergeRanges(ctx context.Context, most int, ranges []mergedRange,
	merge func(ctx context.Context, r *mergedRange) error) (all written, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &sharedMerge{d: d, most: most, ranges: ranges, merge: merge, cancel: cancel}
	for s.hire(ctx); s.one(ctx); s.hire(ctx) {
	}
	s.group.Wait()
	for _, r := range ranges {
		all.tables = append(all.tables, r.tables...)
		if r.out != nil {
			all.blobs = append(all.blobs, r.out.Blobs()...)
			all.relocated += r.out.Relocated()
		}
	}
	if s.err == nil {
		s.err = d.syncNames(all.tables)
	}
	if s.err == nil {
		return all, nil
	}
	for _, r := range ranges {
		if r.out != nil {
			r.out.Abort()
		}
	}
	return written{}, s.err
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
	if err := callback.Do(ofOptions, func() error { return s.merge(ctx, &s.ranges[i]) }); err != nil {
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

// left returns how many ranges nobody has taken.
func (s *sharedMerge) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ranges) - s.next
}

// hire lets threads that are free help, while ranges are left beside the caller's next one.
func (s *sharedMerge) hire(ctx context.Context) {
	for left := s.left(); left > 1 && s.d.hireHelper(s.most); left-- {
		s.group.Go(func() {
			for again := true; again; again = again && s.left() > 0 && s.d.hireHelper(s.most) {
				again = s.one(ctx)
				s.d.reschedule(s.d.dismissHelper) // what is due comes first
			}
		})
	}
}

// mostThreads returns how many threads may be busy when a compaction has its ranges merged. One
// is left to others where the compaction may take long and something else keeps level 0 short.
func (d *DB) mostThreads(c *runningCompaction) int {
	if c.Asked || d.opts.Compaction != Leveled {
		return d.threads() - 1
	}
	return d.threads()
}

// dismissHelper gives a thread back. The caller holds d.mu.
func (d *DB) dismissHelper() {
	d.compactions.helpers--
	d.share.ReleaseThread()
}

// hireHelper takes a thread for a range, if less than most are busy.
func (d *DB) hireHelper(most int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.compactions.busyThreads() >= most || !d.share.TryThread() {
		return false
	}
	d.compactions.helpers++
	return true
}
