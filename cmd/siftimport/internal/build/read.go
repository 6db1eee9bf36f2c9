package build

import (
	"bytes"
	"fmt"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/work"
	"github.com/siftkv/siftkv/kv"
)

// A reader cuts what it reads into chunks, and these into files.
type reader struct {
	*run
	number int    // of the next file
	last   []byte // key
	any    bool   // there is a last key
	chunk  *chunk // being filled; nil: none
	job    *job   // that it belongs to
	size   int64  // bytes read for the job
}

// read hands out jobs until the store's end.
func (r *run) read(s source.Store, dir *work.Dir) error {
	in := &reader{run: r, number: len(dir.Files)}
	var from []byte
	if n := len(dir.Files); n > 0 {
		in.last, in.any = bytes.Clone(dir.Files[n-1].Last), true
		from = append(bytes.Clone(in.last), 0)
	}
	if err := s.Scan(from, in.visit); err != nil {
		return err
	}
	if err := in.send(); err != nil {
		return err
	}
	in.finish()
	return nil
}

// visit takes an entry.
func (in *reader) visit(e *source.Entry) error {
	if err := in.check(e); err != nil {
		return err
	}
	in.last, in.any = append(in.last[:0], e.Key...), true
	if in.chunk == nil {
		if err := in.begin(); err != nil {
			return err
		}
	}
	in.chunk.add(e)
	if len(in.chunk.data) < chunkSize {
		return nil
	}
	if in.Progress != nil {
		in.Progress(in.last)
	}
	in.size += int64(len(in.chunk.data))
	if err := in.send(); err != nil {
		return err
	}
	if in.size >= in.rawSize() {
		in.finish()
	}
	return nil
}

// check refuses what a store of package kv cannot have, and what no store can.
func (in *reader) check(e *source.Entry) error {
	switch {
	case in.any && bytes.Compare(e.Key, in.last) <= 0:
		return fmt.Errorf("the source %w: key %.64q comes after %.64q", source.ErrDamaged, e.Key, in.last)
	case len(e.Key) > kv.MaxKeySize:
		return fmt.Errorf("the source %w: a key has %d bytes, the limit is %d; it begins with %.64q",
			source.ErrUnsupported, len(e.Key), kv.MaxKeySize, e.Key)
	case len(e.Value) > kv.MaxValueSize:
		return fmt.Errorf("the source %w: the value of key %.64q has %d bytes, the limit is %d",
			source.ErrUnsupported, e.Key, len(e.Value), kv.MaxValueSize)
	}
	return nil
}

// begin gets a chunk, and a job for it if there is none.
func (in *reader) begin() error {
	select {
	case in.chunk = <-in.free:
	case <-in.ctx.Done():
		return in.ctx.Err()
	}
	if in.job != nil {
		return nil
	}
	// A job takes all chunks that there are: the reader never waits for a builder but by waiting for a chunk.
	in.job = &job{name: work.NameOf(in.number), chunks: make(chan *chunk, cap(in.free)), done: make(chan struct{})}
	in.number++
	in.size = 0
	return nil
}

// send hands the chunk to its builder. A job goes to one with its first chunk.
func (in *reader) send() error {
	if in.chunk == nil {
		return nil
	}
	in.job.chunks <- in.chunk
	in.chunk = nil
	if in.job.given {
		return nil
	}
	select {
	case in.jobs <- in.job:
	case <-in.ctx.Done():
		return in.ctx.Err()
	}
	in.job.given = true
	in.order <- in.job
	return nil
}

// finish ends the job.
func (in *reader) finish() {
	if in.job != nil {
		close(in.job.chunks)
		in.job = nil
	}
}
