// Package build makes sorted files of what is read from a store: goroutines read a range each, others build a file
// each, and finished files go to stable storage meanwhile.
package build

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/work"
	"github.com/siftkv/siftkv/sstable"
)

// Options say how files are made.
type Options struct {
	Writer   sstable.WriterOptions
	FileSize int64 // about how large a file becomes, in bytes
	Threads  int   // that build files, at least 1; as many read
	// Progress, unless nil, is called now and then by those who read, at once: the range has been read up to key;
	// all of it if that is nil.
	Progress func(r source.Range, key []byte)
}

// memory bounds what is read and not built yet, in bytes for each thread that builds.
const memory = 48 << 20

// Run reads ranges of a store, which begin where the files that are finished end, and adds files to the directory until
// all is there. It returns soon when ctx ends; files that were finished by then stay but for those that are not next to
// the others: they are read again.
func Run(ctx context.Context, s source.Store, ranges []source.Range, dir *work.Dir, o Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Options: o, ctx: ctx, cancel: cancel, dir: dir, ratio: 1,
		free: newPool(memory / chunkSize * o.Threads), jobs: make(chan *job)}
	for _, f := range dir.Files {
		r.number.Store(max(r.number.Load(), int64(work.NumberOf(f.Name)+1)))
	}
	for _, p := range ranges {
		r.parts = append(r.parts, &part{Range: p, order: make(chan *job, 1<<12)})
	}
	var readers, builders, recorder sync.WaitGroup
	for range o.Threads {
		builders.Go(r.build)
	}
	recorder.Go(r.record)
	for range min(o.Threads, len(r.parts)) {
		readers.Go(func() { r.fail(r.readParts(s)) })
	}
	readers.Wait()
	close(r.jobs)
	builders.Wait()
	for p := r.take(); p != nil; p = r.take() {
		close(p.order) // after a failure
	}
	recorder.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.Check()
}

type run struct {
	Options
	ctx    context.Context
	cancel context.CancelCauseFunc
	dir    *work.Dir

	number atomic.Int64 // of the next file
	parts  []*part
	taken  atomic.Int64 // parts that somebody reads, or has read

	free *pool
	jobs chan *job // for builders

	mu    sync.Mutex
	ratio float64 // bytes read for each byte of a file, of the last one finished
}

// A part is a range on its way into files.
type part struct {
	source.Range
	order chan *job // for the recorder: the files, in order; closed when no more come
	whole bool      // then: all of it was read
}

// take returns the next part that nobody reads, nil if there is none.
func (r *run) take() *part {
	if n := r.taken.Add(1); n <= int64(len(r.parts)) {
		return r.parts[n-1]
	}
	return nil
}

// fail ends the run, unless err is nil.
func (r *run) fail(err error) {
	if err != nil {
		r.cancel(err)
	}
}

// rawSize returns how many bytes are read for one file.
func (r *run) rawSize() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(float64(r.FileSize) * r.ratio)
}

func (r *run) learn(f *work.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.Size > r.FileSize/8 { // the overhead of a small one misleads
		r.ratio = float64(f.Bytes) / float64(f.Size)
	}
}
