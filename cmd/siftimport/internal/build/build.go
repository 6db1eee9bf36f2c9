// Package build makes sorted files of what is read from a store: one goroutine reads, several build a file each, and
// finished files go to stable storage meanwhile.
package build

import (
	"context"
	"sync"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/work"
	"github.com/siftkv/siftkv/sstable"
)

// Options say how files are made.
type Options struct {
	Writer   sstable.WriterOptions
	FileSize int64 // about how large a file becomes, in bytes
	Threads  int   // that build files, at least 1
	// Progress is called by the reader now and then, with the last key that it has read.
	Progress func(key []byte)
}

// memory bounds what is read and not built yet, in bytes for each thread.
const memory = 48 << 20

// Run reads a store from the end of the files that are finished on, and adds files to the directory until all is
// there. It returns soon when ctx ends; files that were finished by then stay.
func Run(ctx context.Context, s source.Store, dir *work.Dir, o Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Options: o, ctx: ctx, cancel: cancel, dir: dir, ratio: 1,
		free: make(chan *chunk, memory/chunkSize*o.Threads), jobs: make(chan *job), order: make(chan *job, 1<<16)}
	for range cap(r.free) {
		r.free <- &chunk{}
	}
	var builders, recorder sync.WaitGroup
	for range o.Threads {
		builders.Go(r.build)
	}
	recorder.Go(r.record)
	r.fail(r.read(s, dir))
	close(r.jobs)
	builders.Wait()
	close(r.order)
	recorder.Wait()
	return context.Cause(ctx)
}

// A run is one call of Run.
type run struct {
	Options
	ctx    context.Context
	cancel context.CancelCauseFunc
	dir    *work.Dir

	free  chan *chunk // buffers: the reader waits for one
	jobs  chan *job   // for builders
	order chan *job   // the same, for the recorder

	mu    sync.Mutex
	ratio float64 // bytes read for each byte of a file, of the last one finished
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
