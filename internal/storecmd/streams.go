package storecmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/siftkv/siftkv/internal/backup"
)

// streams is a file, or standard input, with backup streams one after the other. A
// read that waits ends with the context.
type streams struct {
	ctx   context.Context
	name  string
	r     *bufio.Reader
	pipe  *io.PipeReader
	file  *os.File // nil: standard input
	size  int64    // in bytes; 0: nothing tells
	meter *meter
	stop  func() bool
}

// openStreams opens a file to read backups from; "-" is standard input.
func (p *program) openStreams(ctx context.Context, name, phase string) (*streams, error) {
	s := &streams{ctx: ctx, name: name}
	from := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			s.size = info.Size()
		}
		s.file, from = f, f
	}
	// Nothing ends a read of a pipe or a terminal that has begun: the goroutine is abandoned.
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, from)
		_ = w.CloseWithError(err)
	}()
	s.pipe, s.stop = r, context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) })
	s.meter = p.meter(phase, s.size)
	s.r = bufio.NewReaderSize(io.TeeReader(r, s.meter), 64<<10)
	return s, nil
}

func (s *streams) close() {
	s.stop()
	s.meter.end()
	_ = s.pipe.Close()
	if s.file != nil {
		_ = s.file.Close() // it was read only
	}
}

func (s *streams) Read(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.r.Read(b)
}

// more reports whether there is another byte, or an error in its place.
func (s *streams) more() bool {
	_, err := s.r.Peek(1)
	return !errors.Is(err, io.EOF)
}

// pos is the number of bytes that were read.
func (s *streams) pos() int64 { return s.meter.bytes - int64(s.r.Buffered()) }

// header returns the header of the stream that comes next, and leaves it to be read.
// It is false if this is no beginning of a stream, or a damaged one.
func (s *streams) header() (backup.Header, bool) {
	b, _ := s.r.Peek(backup.HeadSize)
	in, err := backup.NewReader(bytes.NewReader(b))
	if err != nil || !in.Started() {
		return backup.Header{}, false
	}
	return in.Header(), true
}
