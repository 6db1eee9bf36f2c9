package build

import (
	"bytes"
	"fmt"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/work"
	"github.com/siftkv/siftkv/kv"
)

// A reader cuts what it reads into chunks, and these into files. No file has keys of two parts.
type reader struct {
	*run
	part  *part
	last  []byte // key
	any   bool   // there is a last key
	chunk *chunk // being filled; nil: none
	job   *job   // that it belongs to
	size  int64  // bytes read for the job
}

// readParts reads parts until there are no more.
func (r *run) readParts(s source.Store) error {
	for p := r.take(); p != nil; p = r.take() {
		err := r.readPart(s, p)
		p.whole = err == nil
		close(p.order)
		if err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(p.Range, nil)
		}
	}
	return nil
}

// readPart hands out jobs until a part's end.
func (r *run) readPart(s source.Store, p *part) error {
	in := &reader{run: r, part: p}
	if err := s.Scan(p.Range, in.visit); err != nil {
		return err
	}
	if err := in.send(); err != nil {
		return err
	}
	in.finish()
	return r.ctx.Err()
}

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
		in.Progress(in.part.Range, in.last)
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
	case !in.any && bytes.Compare(e.Key, in.part.From) < 0:
		return fmt.Errorf("the source %w: key %.64q comes after %.64q", source.ErrDamaged, e.Key, in.part.From)
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
func (in *reader) begin() (err error) {
	if in.chunk, err = in.free.get(in.ctx); err != nil || in.job != nil {
		return err
	}
	// A job takes all chunks that there are: the reader never waits for a builder but by waiting for a chunk.
	in.job = &job{name: work.NameOf(int(in.number.Add(1) - 1)), chunks: make(chan *chunk, cap(in.free.room)),
		done: make(chan struct{})}
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
	in.part.order <- in.job
	return nil
}

func (in *reader) finish() {
	if in.job != nil {
		close(in.job.chunks)
		in.job = nil
	}
}
